#include "tileweave/plan/tensor_use.h"

namespace tileweave {

Box first_common_box(const UsedOperand& a, const UsedOperand& b) {
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < a.tiles.num_touched(); ++i) {
    const Box box = a.tiles.box(i);
    b.tiles.places_meeting(box, places);
    if (!places.empty()) return intersect(box, b.tiles.box(places.front()));
  }
  Box none;
  none.begin = none.size = Coord::filled(1, 0);
  return none;
}

}  // namespace tileweave
