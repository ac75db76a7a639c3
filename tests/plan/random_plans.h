// Random right plans (chains, diamonds, fans; grids, tables, views, ranks; derived and raw forms),
// and mutations that make one of them wrong, or leave it right.
#pragma once

#include <random>
#include <string>

#include "tileweave/plan/plan.h"

namespace tileweave::testing {

using Random = std::mt19937;

Plan random_plan(Random& random);

/// Changes one thing; says what, or nothing when the plan had no place for the change drawn.
std::string mutate(Plan& plan, Random& random);

}  // namespace tileweave::testing
