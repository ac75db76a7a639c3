// Here, because the command links every device there is.
#include <gtest/gtest.h>

#include "tileweave/core/error.h"
#include "tileweave/runtime/device.h"

namespace tileweave {
namespace {

TEST(OpenDevice, OpensTheEmulatedDeviceByNameAndRefusesOtherNames) {
  EXPECT_EQ(open_device("cpu")->name(), "cpu");
  try {
    open_device("tpu");
    FAIL() << "an unknown device was opened";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "open device: `cpu` or `cuda`, got `tpu`");
  }
}

}  // namespace
}  // namespace tileweave
