// How much a text can still need, whatever is written next.
//
// Far from a limit nothing needs to be checked.  That is known where every object is a plain table
// and every array a plain list: what is open on the stack needs at most what its frame needs when
// nothing of it is written yet, and a token adds at most the frames of the brackets that it opens
// and the longest end of a unit.  Other formulas have no bound here.
#include <algorithm>

#include "constrain/json_machine.hpp"

namespace constrain {

namespace {

constexpr uint64_t kUnknown = UINT64_MAX;
constexpr size_t kMaxGoals = 3000;

uint64_t plus(uint64_t a, uint64_t b) { return a == kUnknown || b == kUnknown ? kUnknown : a + b; }

}  // namespace

uint64_t JsonMachine::table_reserve(uint32_t id) {
  const auto known = table_reserves_.find(id);
  if (known != table_reserves_.end()) return known->second;
  ObjectTable& t = theory_.table(id);
  theory_.prepare(t);
  const auto value = [&](Formula goal) -> uint64_t {
    const JsonTheory::Cost cost = theory_.least_value(goal);
    return cost == JsonTheory::kNoCost ? kUnknown : cost;
  };
  uint64_t total = 2, farthest = 0;
  size_t optional = 0;
  for (size_t i = 0; i < t.names.size(); ++i) {
    if (!t.allowed[i]) continue;
    const uint64_t member = plus(theory_.name_cost(t.names[i]), value(t.goals[i]));
    farthest = std::max(farthest, member);
    if (t.required[i]) total = plus(total, member);
    else ++optional;
  }
  for (const Formula goal : theory_.goals_of_others(id)) {
    if (theory_.satisfiable(goal)) farthest = std::max(farthest, plus(value(goal), 4));
  }
  // Members that only count must come from the names.
  if (t.least > t.count_required) {
    const uint64_t extra = t.least - t.count_required;
    if (optional < extra || t.others != LexicalPool::kNothing || farthest == kUnknown) {
      total = kUnknown;
    } else {
      total = plus(total, extra * farthest);
    }
  }
  // A member that has been begun, whose value is still to come.
  total = plus(total, farthest);
  return table_reserves_[id] = total;
}

uint64_t JsonMachine::items_reserve(Formula f) {
  const auto known = items_reserves_.find(f);
  if (known != items_reserves_.end()) return known->second;
  std::vector<Formula> goals;
  uint32_t least = 0;
  uint64_t total = 2, farthest = 0;
  if (!theory_.list_goals(f, goals, least)) {
    total = kUnknown;
  } else {
    for (size_t i = 0; i < goals.size(); ++i) {
      if (!theory_.satisfiable(goals[i])) break;   // no item comes here
      const JsonTheory::Cost cost = theory_.least_value(goals[i]);
      const uint64_t item = cost == JsonTheory::kNoCost ? kUnknown : cost + 1;
      farthest = std::max(farthest, item);
      if (i + 1 < goals.size() && i < least) total = plus(total, item);
      if (i + 1 == goals.size() && i < least) {
        total = item == kUnknown ? kUnknown : plus(total, item * (least - i));
      }
    }
    total = plus(total, farthest);
  }
  return items_reserves_[f] = total;
}

uint64_t JsonMachine::frame_reserve(const StackNode& n) {
  switch (n.kind) {
    case Kind::kFastObject: return table_reserve(n.a);
    case Kind::kArray: return n.c == 0 && n.d == 0 ? items_reserve(n.a) : kUnknown;
    case Kind::kArrayItem:
      return n.c == 0 && n.d == 0 && n.e == 0 ? items_reserve(n.a) : kUnknown;
    default: return n.a == Formulas::kTrue && n.e == 0 ? table_reserve(any_object_) : kUnknown;
  }
}

uint64_t JsonMachine::stack_reserve(uint32_t id) {
  std::vector<uint32_t> path;
  uint64_t total = 0;
  for (; id != 0; id = node(id).parent) {
    if (const auto known = stack_reserves_.find(id); known != stack_reserves_.end()) {
      total = known->second;
      break;
    }
    path.push_back(id);
  }
  for (size_t i = path.size(); i-- > 0;) {
    total = plus(total, frame_reserve(node(path[i])));
    stack_reserves_[path[i]] = total;
  }
  return total;
}

// Looks at every goal that a value of the schema may have.
void JsonMachine::find_reserves() {
  reserves_.known = true;
  std::unordered_map<Formula, bool> seen;
  std::vector<Formula> open;
  const auto reach = [&](Formula goal) {
    if (goal != Formulas::kFalse && seen.try_emplace(goal, true).second) open.push_back(goal);
  };
  const auto unit = [&](uint32_t bytes) {
    const uint64_t bound = bytes >= UINT32_MAX - 1 ? kUnknown : bytes;
    reserves_.unit = std::max(reserves_.unit, bound);
  };
  const auto frame = [&](uint64_t bytes) { reserves_.frame = std::max(reserves_.frame, bytes); };
  const auto text = [&](LexId language) {
    if (pool_.live(language)) unit(pool_.farthest({language, 0, LexicalPool::kJson}));
  };
  unit(5);   // literals
  for (const Formula root : roots_) {
    if (!theory_.satisfiable(root)) continue;
    const JsonTheory::Cost whole = theory_.least_value(root);
    unit(whole == JsonTheory::kNoCost ? UINT32_MAX : whole);
    reach(root);
  }
  while (!open.empty() && reserves_.unit != kUnknown && reserves_.frame != kUnknown) {
    const Formula goal = open.back();
    open.pop_back();
    if (seen.size() > kMaxGoals) {
      reserves_.frame = kUnknown;
      break;
    }
    unit(theory_.numbers().longest_end(theory_.number_language(goal)));
    text(theory_.string_language(goal));
    const Formula array = theory_.typed(goal, Type::kArray);
    if (theory_.array_open(array, 0)) {
      frame(items_reserve(array));
      std::vector<Formula> goals;
      uint32_t least = 0;
      if (theory_.list_goals(array, goals, least)) {
        for (const Formula g : goals) reach(g);
      }
    }
    const Formula object = theory_.typed(goal, Type::kObject);
    if (!theory_.object_open(object, StringSets::kEmpty)) continue;
    if (object != Formulas::kTrue && theory_.op(object) != Fop::kTable) {
      reserves_.frame = kUnknown;
      break;
    }
    const uint32_t id = object == Formulas::kTrue ? any_object_ : theory_[object].a;
    frame(table_reserve(id));
    ObjectTable& t = theory_.table(id);
    for (size_t i = 0; i < t.names.size(); ++i) {
      if (!t.allowed[i]) continue;
      unit(theory_.name_cost(t.names[i]));
      reach(t.goals[i]);
    }
    text(t.others);
    for (const Formula g : theory_.goals_of_others(id)) reach(g);
  }
}

uint32_t JsonMachine::most_needed(const Config& c, uint32_t brackets) {
  if (!reserves_.known) find_reserves();
  if (reserves_.unit == kUnknown || reserves_.frame == kUnknown) return UINT32_MAX;
  const uint64_t total =
      plus(stack_reserve(c.w[1]), reserves_.unit + reserves_.frame * (uint64_t{brackets} + 1));
  return uint32_t(std::min<uint64_t>(total, UINT32_MAX));
}

}  // namespace constrain
