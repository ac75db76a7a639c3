// Reports of a GPU that nobody has: every finding that needs attention is called so.
#include "cli/cuda_words.h"

#include <gtest/gtest.h>

#include <string>

namespace tileweave::cli {
namespace {

MachineReport good_report() {
  MachineReport report;
  report.limits = h200_limits();
  report.limits.name = "GPU A";
  report.driver = "580.65";
  report.driver_version = report.runtime_version = 13000;
  report.compute_capability = 90;
  report.independent_streams = 32;
  for (const char* name :
       {"programmatic launch", "memory operations in graphs", "green contexts"}) {
    report.checks.push_back({name, Works::kYes, "tried"});
  }
  report.checks.push_back({"peer access", Works::kNotThere, "there is one GPU"});
  for (const BlockSizes sizes : {BlockSizes::kEqual, BlockSizes::kUnequal}) {
    for (const char* submit : {"eager", "graph"}) {
      LaunchOrderFinding f;
      f.chain = sizes == BlockSizes::kEqual ? "equal blocks" : "by turns";
      f.submit = submit;
      f.sizes = sizes;
      f.launches = 1000;
      f.blocks = 132000;
      report.launch_order.push_back(f);
    }
  }
  return report;
}

const Finding& find(const CudaInspection& inspection, const std::string& name) {
  for (const Finding& f : inspection.findings) {
    if (f.name == name) return f;
  }
  ADD_FAILURE() << "no finding " << name;
  return inspection.findings.front();
}

TEST(CudaWords, AMissingVendorLibraryIsSaidAndNeedsNoAttention) {
  const Finding there = vendor_library_in_words("cuBLASLt 13.0.2", "");
  EXPECT_EQ(there.status, FindingStatus::kOk);
  EXPECT_EQ(there.found, "cuBLASLt 13.0.2");
  const Finding missing = vendor_library_in_words("", "libcublasLt.so.13: cannot open");
  EXPECT_EQ(missing.status, FindingStatus::kOk);
  EXPECT_NE(missing.found.find("libcublasLt.so.13: cannot open"), std::string::npos);
  EXPECT_NE(missing.means.find("--wide-products vendor"), std::string::npos);
}

TEST(CudaWords, NothingNeedsAttentionOnAGoodMachine) {
  const CudaInspection inspection = in_words(good_report());
  for (const Finding& f : inspection.findings) {
    EXPECT_EQ(f.status, FindingStatus::kOk) << f.name << ": " << f.found;
    EXPECT_EQ(f.device, "cuda");
  }
  for (const char* name :
       {"GPU", "driver", "CUDA runtime", "shared memory", "queues", "memory operations in graphs",
        "green contexts", "peer access", "launch order", "launch order kept"}) {
    EXPECT_NE(find(inspection, name).found, "");
  }
  EXPECT_EQ(find(inspection, "driver").found, "580.65, for CUDA 13.0");
  EXPECT_EQ(inspection.launch_order.gpu, "GPU A");
  EXPECT_EQ(inspection.launch_order.driver, "580.65");
  EXPECT_EQ(inspection.launch_order.equal.launches, 2000);
  EXPECT_EQ(inspection.launch_order.unequal.launches, 2000);
  EXPECT_EQ(launch_order_of(inspection.launch_order), LaunchOrder::kTrusted);
}

TEST(CudaWords, OneEarlyLaunchOfAnyChainEndsTheTrust) {
  for (std::size_t i = 0; i < good_report().launch_order.size(); ++i) {
    MachineReport report = good_report();
    report.launch_order[i].early_launches = 1;
    report.launch_order[i].early_blocks = 3;
    report.launch_order[i].longest_lead_ns = 96;
    const CudaInspection inspection = in_words(report);
    EXPECT_EQ(launch_order_of(inspection.launch_order), LaunchOrder::kNotTrusted) << i;
    EXPECT_EQ(find(inspection, "launch order kept").status, FindingStatus::kAttention) << i;
    std::string early;
    for (const Finding& f : inspection.findings) {
      if (f.name == "launch order" && f.status == FindingStatus::kAttention) early += f.found;
    }
    EXPECT_NE(early.find("1 of 2000 launches (3 of 264000 blocks)"), std::string::npos) << early;
    EXPECT_NE(early.find("96 ns"), std::string::npos) << early;
  }
}

TEST(CudaWords, TooFewLaunchesAreNoGroundForTrust) {
  MachineReport report = good_report();
  for (LaunchOrderFinding& f : report.launch_order) f.launches = 499;
  EXPECT_EQ(launch_order_of(in_words(report).launch_order), LaunchOrder::kNotTrusted);
  report.launch_order.clear();
  EXPECT_EQ(find(in_words(report), "launch order kept").status, FindingStatus::kAttention);
}

TEST(CudaWords, WhatDoesNotWorkNeedsAttention) {
  MachineReport report = good_report();
  report.driver_version = 12080;
  report.compute_capability = 75;
  report.independent_streams = 1;
  report.checks[0].works = Works::kNo;
  report.checks[1].works = Works::kNotThere;
  report.checks[3].works = Works::kNo;
  const CudaInspection inspection = in_words(report);
  for (const char* name : {"driver", "GPU", "queues", "programmatic launch",
                           "memory operations in graphs", "peer access"}) {
    EXPECT_EQ(find(inspection, name).status, FindingStatus::kAttention) << name;
    EXPECT_NE(find(inspection, name).means, "") << name;
  }
}

TEST(CudaWords, HopsKeepTheirArmsAndNameDowngrades) {
  HopBenchReport measured;
  measured.machine = "GPU A";
  measured.num_nodes = 8;
  measured.num_blocks = 132;
  measured.threads = 256;
  HopArmResult arm;
  arm.name = "tile none";
  arm.us_per_hop = {1, 2};
  arm.num_downgrades = 7;
  measured.arms = {arm};
  const HopReport report = in_words(measured);
  EXPECT_EQ(report.device, "cuda");
  EXPECT_EQ(report.hops, 8);
  ASSERT_EQ(report.arms.size(), 1U);
  EXPECT_EQ(report.arms[0].name, "tile none");
  EXPECT_EQ(report.arms[0].us_per_hop, (std::vector<double>{1, 2}));
  EXPECT_EQ(report.arms[0].remark, "7 of 7 edges ran as full dependencies");
}

}  // namespace
}  // namespace tileweave::cli
