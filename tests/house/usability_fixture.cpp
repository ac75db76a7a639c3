// What usability_test.py counts: `base` at the end of a line says that it is a base line.
#include <string>
#include <vector>

namespace fixture {

int declared_only(int first, int second);

namespace {

/* A comment
   of two lines. */
struct Options {           // base
  std::string name;        // base
  int tile_m = 1;          // base
  std::vector<int> order;  // base
};

constexpr int kWidth = 4;                                       // base
const std::string kText = "// + alloc is no mark in a string";  // base

void require(bool holds, const char* what) {
  if (!holds) throw std::string(what);
}

// +{ other
int only_for_overlap(int rows) {
  const int tiles = (rows + 3) / 4;
  return tiles;
}
// +}

}  // namespace

class Node {  // base
 public:
  explicit Node(const Options& options) : options_{options}, sum_(0) {
    require(options.tile_m > 0, "a positive tile");
    sum_ = options_.tile_m;  // base
  }

  int sum() const { return sum_; }

 private:
  Options options_;  // base
  int sum_;          // base
};

int use(const std::vector<int>& values) {
  int sum = 0;                    // base
  for (const int value : values)  // base
    sum += value;                 // base
  return sum;                     // base
}

int build(int rows, int columns) {
  static_assert(kWidth > 1);
  const int tiles = only_for_overlap(rows);                // + alloc
  const std::vector<int> extents{tiles, kWidth};           // + alloc
  std::vector<int> slots(extents.begin(), extents.end());  // + alloc
  const Node node({
      // base
      .name = kText,   // base
      .tile_m = rows,  // base
      .order = {},     // base
  });
  slots.push_back(node.sum());                                    // + in/out
  slots.push_back(columns);                                       // + out
  slots.push_back(rows);                                          // + out
  slots[0] = kWidth;                                              // + tune
  slots[1] = use(slots);                                          // + remap
  const auto scale = [&](int value) { return value * columns; };  // base
  const int total = node.sum() + scale(columns);                  // base
  return total + static_cast<int>(slots.size() - slots.size());   // + other
  return total;                                                   // base
}

}  // namespace fixture
