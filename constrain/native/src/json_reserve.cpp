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

// Looks at every goal that a value of a schema may have, beginning with what can follow in the
// frame at the bottom of a stack, or with the goal of the whole value.
const JsonMachine::Reserves& JsonMachine::reserves(uint64_t key, const StackNode* bottom,
                                                   Formula goal) {
  const auto known = reserves_.find(key);
  if (known != reserves_.end()) return known->second;
  Reserves r;
  std::unordered_map<Formula, bool> seen;
  std::vector<Formula> open;
  const auto reach = [&](Formula g) {
    if (g != Formulas::kFalse && seen.try_emplace(g, true).second) open.push_back(g);
  };
  const auto unit = [&](uint32_t bytes) {
    r.unit = std::max(r.unit, bytes >= UINT32_MAX - 1 ? kUnknown : uint64_t{bytes});
  };
  const auto text = [&](LexId language) {
    if (pool_.live(language)) unit(pool_.farthest({language, 0, LexicalPool::kJson}));
  };
  const auto items = [&](Formula array) {
    r.frame = std::max(r.frame, items_reserve(array));
    std::vector<Formula> goals;
    uint32_t least = 0;
    if (!theory_.list_goals(array, goals, least)) return;
    for (const Formula g : goals) reach(g);
  };
  const auto members = [&](uint32_t id) {
    r.frame = std::max(r.frame, table_reserve(id));
    const ObjectTable& t = theory_.table(id);
    for (size_t i = 0; i < t.names.size(); ++i) {
      if (!t.allowed[i]) continue;
      unit(theory_.name_cost(t.names[i]));
      reach(t.goals[i]);
    }
    text(t.others);
    for (const Formula g : theory_.goals_of_others(id)) reach(g);
  };
  unit(5);   // literals
  if (!bottom) {
    const JsonTheory::Cost whole = theory_.least_value(goal);
    unit(whole == JsonTheory::kNoCost ? UINT32_MAX : whole);
    reach(goal);
  } else if (bottom->kind == Kind::kFastObject) {
    members(bottom->a);
  } else if (frame_reserve(*bottom) == kUnknown) {
    r.frame = kUnknown;
  } else if (bottom->kind == Kind::kArray || bottom->kind == Kind::kArrayItem) {
    items(bottom->a);
  } else {
    members(any_object_);
  }
  while (!open.empty() && r.unit != kUnknown && r.frame != kUnknown) {
    const Formula g = open.back();
    open.pop_back();
    if (seen.size() > kMaxGoals) {
      r.frame = kUnknown;
      break;
    }
    unit(theory_.numbers().longest_end(theory_.number_language(g)));
    text(theory_.string_language(g));
    const Formula array = theory_.typed(g, Type::kArray);
    if (theory_.array_open(array, 0)) items(array);
    const Formula object = theory_.typed(g, Type::kObject);
    if (!theory_.object_open(object, StringSets::kEmpty)) continue;
    if (object == Formulas::kTrue) members(any_object_);
    else if (theory_.op(object) == Fop::kTable) members(theory_[object].a);
    else r.frame = kUnknown;
  }
  return reserves_[key] = r;
}

uint32_t JsonMachine::most_needed(const Config& c, uint32_t brackets, uint32_t) {
  if (surface_) return UINT32_MAX;   // brackets do not tell how much a token opens
  uint64_t total = 0;
  if (c.w[1] == 0) {
    switch (mode(c)) {
      case Mode::kDone: return 0;
      case Mode::kLiteral: return 5;
      case Mode::kNumber: return theory_.numbers().longest_end(c.w[2]);
      case Mode::kString: return pool_.farthest({c.w[2], 0, c.w[4]});
      default: break;
    }
    const Reserves& r = reserves(pack(0, c.w[2]), nullptr, c.w[2]);
    total = plus(r.unit, r.frame == kUnknown ? kUnknown : r.frame * (uint64_t{brackets} + 1));
  } else {
    uint32_t id = c.w[1];
    while (node(id).parent != 0) id = node(id).parent;
    const StackNode bottom = node(id);
    const Reserves& r = reserves(pack(uint32_t(bottom.kind) + 1, bottom.a), &bottom, 0);
    total = plus(stack_reserve(c.w[1]), r.unit);
    total = plus(total, r.frame == kUnknown ? kUnknown : r.frame * (uint64_t{brackets} + 1));
  }
  // Every blank stands behind a colon or a comma, which was counted.
  if (whitespace_ == Whitespace::kSpaced) total = plus(total, total);
  return uint32_t(std::min<uint64_t>(total, UINT32_MAX));
}

}  // namespace constrain
