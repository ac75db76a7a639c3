#include "tileweave/tile/tile_order.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

/// `list[index]`, or an Error that says what the index was meant to name.
template <class List>
auto& entry(List& list, std::int64_t index, const char* expected) {
  require(index >= 0 && index < static_cast<std::int64_t>(list.size()), "tile order", expected,
          std::to_string(index) + " of " + std::to_string(list.size()));
  return list[static_cast<std::size_t>(index)];
}

std::vector<std::int32_t> sorted_works(
    std::int64_t count, const std::function<bool(std::int32_t, std::int32_t)>& before) {
  require(count >= 0 && count < (std::int64_t{1} << 31), "tile order", "fewer than 2^31 works",
          std::to_string(count));
  std::vector<std::int32_t> works(static_cast<std::size_t>(count));
  std::iota(works.begin(), works.end(), 0);
  std::stable_sort(works.begin(), works.end(), before);
  return works;
}

}  // namespace

TileOrder TileOrder::rotation(std::int64_t offset) {
  TileOrder order;
  order.form_ = OrderForm::kRotation;
  order.offset_ = offset;
  return order;
}

TileOrder TileOrder::table(std::vector<std::int32_t> works) {
  TileOrder order;
  order.form_ = OrderForm::kTable;
  order.works_ = std::move(works);
  return order;
}

TileOrder TileOrder::longest_first(std::int64_t count,
                                   const std::function<double(std::int64_t)>& cost) {
  return table(
      sorted_works(count, [&](std::int32_t a, std::int32_t b) { return cost(a) > cost(b); }));
}

TileOrder TileOrder::follow_producer(
    std::int64_t count, const std::vector<std::int64_t>& producer_rank,
    const std::function<std::vector<std::int64_t>(std::int64_t)>& reads) {
  std::vector<std::int64_t> ready(static_cast<std::size_t>(count), -1);
  for (std::int64_t w = 0; w < count; ++w) {
    for (const std::int64_t tile : reads(w)) {
      auto& r = ready[static_cast<std::size_t>(w)];
      r = std::max(r, entry(producer_rank, tile, "a data tile of the producer"));
    }
  }
  return table(sorted_works(count, [&](std::int32_t a, std::int32_t b) {
    return ready[static_cast<std::size_t>(a)] < ready[static_cast<std::size_t>(b)];
  }));
}

std::int64_t TileOrder::at(std::int64_t position, std::int64_t count) const {
  switch (form_) {
    case OrderForm::kIdentity:
      return position;
    case OrderForm::kRotation: {
      const std::int64_t shifted = (position + offset_ % count) % count;
      return shifted < 0 ? shifted + count : shifted;
    }
    case OrderForm::kTable:
      break;
  }
  return entry(works_, position, "a position of the table");
}

std::vector<std::int64_t> completion_ranks(
    const TileOrder& order, std::int64_t count, std::int64_t num_data_tiles,
    const std::function<std::vector<std::int64_t>(std::int64_t)>& writes) {
  std::vector<std::int64_t> rank(static_cast<std::size_t>(num_data_tiles), -1);
  for (std::int64_t p = 0; p < count; ++p) {
    for (const std::int64_t tile : writes(order.at(p, count))) {
      entry(rank, tile, "a data tile of the tensor") = p;
    }
  }
  return rank;
}

}  // namespace tileweave
