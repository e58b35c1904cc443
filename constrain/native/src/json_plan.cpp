// Plans for completions where costs could not be found: the shallowest way out.
//
// Satisfiability is asked again under a limit on nesting, raised until the answer is yes, also of
// recursive schemas.  A plan then follows the search that said yes and records its choices.
#include <algorithm>
#include <deque>

#include "constrain/json_theory.hpp"

namespace constrain {

namespace {
constexpr int kMaxHeight = 256;
constexpr int kMaxMembers = 64;
}  // namespace

template <class Fn>
int JsonTheory::shallowest(Fn ask) {
  // One by one while it is cheap, then doubling.
  for (int d = 0; d <= kMaxHeight; d += d < 8 ? 1 : d) {
    const LimitScope limited(*this, d);
    if (ask()) return d;
  }
  return kNoHeight;
}

int JsonTheory::height(Formula f) {
  const uint32_t known = height_memo_.find(f);
  if (known != FlatMap::kMissing) return int(known);
  const int h = shallowest([&] { return satisfiable(f); });
  height_memo_.set(f, uint32_t(h));
  return h;
}

bool JsonTheory::shallow_member(Formula f, StringSet seen, TextId& key, Formula& child) {
  bool found = false;
  shallowest([&] {
    if (!object_open(f, seen)) return false;
    std::vector<Step> plan;
    ticks_ = 0;
    try {
      found = plan_object(f, seen, plan, 0) && !plan.empty();
    } catch (const Spent&) {
      found = false;
    }
    if (found) {
      key = plan.back().key;
      child = plan.back().child;
    }
    return found;
  });
  return found;
}

// Appends the steps to an end of the object, last step first.
bool JsonTheory::plan_object(Formula f, StringSet seen, std::vector<Step>& plan, int members) {
  if (done(f)) return true;
  if (members > kMaxMembers || !object_open(f, seen)) return false;
  return cubes(
      {f}, {}, [&](const Literals& l) { return cube_possible(l, seen); },
      [&](const Literals& l) {
        const Formula g = conjunction(l);
        if (g == kFalse) return false;
        if (done(g)) return true;
        const StringSet excluded = counts(l, seen).forbidden;
        for (const auto& [choice, language] : next_keys(g, l, seen)) {
          TextId text = choice.id;
          if (choice.is_class) {
            std::vector<uint32_t> witness;
            if (!pool_.witness(minus(language, excluded), witness)) continue;
            text = pool_.text(witness);
          }
          const StringSet now = pool_.sets().add(seen, pool_.text_code_points(text));
          const Formula p = after_key(g, choice);
          if (p == kFalse) continue;
          const bool ok = outcomes(p, {}, kTrue, [&](Formula q, Formula c) {
            if (!plan_object(q, now, plan, members + 1)) return false;
            plan.push_back({text, c});
            return true;
          });
          if (ok) return true;
        }
        return false;
      });
}

bool JsonTheory::shallow_item(Formula f, uint32_t values, Formula& child) {
  bool found = false;
  shallowest([&] {
    if (!array_open(f, values)) return false;
    // Breadth first over residuals; what is unique is kept apart by the goals of the items.
    ticks_ = 0;
    std::unordered_map<Formula, std::pair<Formula, Formula>> from;  // residual: first child, depth
    std::deque<Formula> queue{f};
    from[f] = {kTrue, 0};
    size_t steps = 0;
    try {
      while (!queue.empty() && !found && ++steps < 3000) {
        const Formula g = queue.front();
        queue.pop_front();
        const auto [first, depth] = from[g];
        const Formula duplicate = values == 0 ? kFalse : in_values(lists.copy(values));
        outcomes(after_item(g, depth == 0 ? duplicate : kFalse), {}, kTrue,
                 [&](Formula q, Formula c) {
                   const Formula begin = depth == 0 ? c : first;
                   if (!from.try_emplace(q, begin, depth + 1).second) return false;
                   if (done(q)) {
                     child = begin;
                     found = true;
                     return true;
                   }
                   queue.push_back(q);
                   return false;
                 });
      }
    } catch (const Spent&) {
      found = false;
    }
    return found;
  });
  return found;
}

}  // namespace constrain
