// Parts and chains: emptiness and derivatives (rules in regex_terms.hpp).
#include "regex_terms.hpp"

#include <algorithm>

namespace constrain::regex {

namespace {

// Derivatives of chains that are remembered; then all are forgotten.
constexpr size_t kMaxRemembered = size_t{1} << 18;

}  // namespace

bool Terms::null_part(Id id, uint32_t context) const {
  while (true) {
    const Part& p = parts_[id];
    if (p.nullable != Nullable::kDepends) return p.nullable == Nullable::kAlways;
    switch (p.kind) {
      case PartKind::kEnd:
        return true;
      case PartKind::kBehind:
        return (context >> p.a & 1) != 0;
      case PartKind::kLook:
        return null_part(p.a, context) != (p.b != 0);
      case PartKind::kSequence:
        if (!null_part(p.a, context)) return false;
        id = p.b;
        break;
      case PartKind::kRepeat:
        id = p.a;
        break;
      default: {
        const std::span<const Id> list = choices(p);
        return std::any_of(list.begin(), list.end(), [&](Id c) { return null_part(c, context); });
      }
    }
  }
}

bool Terms::null_chain(Id id, uint32_t context) const {
  while (true) {
    const Chain& cell = chains_[id];
    if (cell.nullable != Nullable::kDepends) return cell.nullable == Nullable::kAlways;
    if (!null_part(cell.part, context)) return false;
    id = cell.tail;
  }
}

// Whether the part can begin with this class, as far as a glance shows.
bool Terms::may_take(Id id, uint32_t cls) const {
  while (true) {
    const Part& p = parts_[id];
    switch (p.kind) {
      case PartKind::kSet:
        return set_has(p.a, cls);
      case PartKind::kRepeat:
        id = p.a;
        break;
      case PartKind::kSequence:
        if (parts_[p.a].nullable != Nullable::kNever) return true;
        id = p.a;
        break;
      case PartKind::kChoice:
        return true;
      case PartKind::kState: {
        const std::span<const AutomatonEdge> list = edges(p);
        return std::any_of(list.begin(), list.end(),
                           [&](const AutomatonEdge& e) { return set_has(e.set, cls); });
      }
      default:
        return false;
    }
  }
}

Id Terms::empty_condition(Id id, uint32_t cls, uint32_t context) {
  Id guard = kTrue;
  while (true) {
    const Part p = parts_[id];
    if (p.nullable == Nullable::kAlways) return guard;
    if (p.nullable == Nullable::kNever) return kFalse;
    switch (p.kind) {
      case PartKind::kBehind:
        return (context >> p.a & 1) != 0 ? guard : kFalse;
      case PartKind::kLook: {
        const Id ahead = derive_chain(chain(p.a, kAll), cls, context);
        return conjoin(guard, p.b != 0 ? make_not(ahead) : ahead);
      }
      case PartKind::kSequence:
        guard = conjoin(guard, empty_condition(p.a, cls, context));
        if (guard == kFalse) return kFalse;
        id = p.b;
        break;
      case PartKind::kRepeat:
        id = p.a;
        break;
      case PartKind::kChoice: {
        std::vector<Id> any;
        for (uint32_t i = 0; i < p.b; ++i) {
          any.push_back(empty_condition(choices_[p.a + i], cls, context));
        }
        return conjoin(guard, make_or(std::move(any)));
      }
      default:  // kEnd: a code point follows
        return kFalse;
    }
  }
}

void Terms::derive_part(Id id, Id tail, uint32_t cls, uint32_t context, std::vector<Id>& out) {
  Id guard = kTrue;
  const auto add = [&](Id part, Id k) {
    if (guard == kTrue) {
      derive_part(part, k, cls, context, out);
      return;
    }
    std::vector<Id> inner;
    derive_part(part, k, cls, context, inner);
    out.push_back(conjoin(guard, make_or(std::move(inner))));
  };
  while (true) {
    if (!may_take(id, cls)) return;
    const Part p = parts_[id];
    switch (p.kind) {
      case PartKind::kSet:
        out.push_back(conjoin(guard, atom(tail)));
        return;
      case PartKind::kState:
        for (const AutomatonEdge& edge : edges(p)) {
          if (!set_has(edge.set, cls)) continue;
          out.push_back(conjoin(guard, atom(prepend(edge.part, tail))));
          return;
        }
        return;
      case PartKind::kChoice:
        work(p.b);
        for (uint32_t i = 0; i < p.b; ++i) add(choices_[p.a + i], tail);
        return;
      case PartKind::kRepeat: {
        const uint32_t most = p.c == kInfinity ? kInfinity : p.c - 1;
        add(p.a, prepend(repeat(p.a, p.b == 0 ? 0 : p.b - 1, most), tail));
        if (p.b > 1 && parts_[p.a].nullable == Nullable::kDepends) {
          guard = conjoin(guard, empty_condition(p.a, cls, context));
          if (guard != kFalse) add(p.a, prepend(repeat(p.a, 0, most), tail));
        }
        return;
      }
      case PartKind::kSequence:
        if (may_take(p.a, cls)) add(p.a, chain(p.b, tail));
        if (parts_[p.a].nullable == Nullable::kNever) return;
        guard = conjoin(guard, empty_condition(p.a, cls, context));
        if (guard == kFalse) return;
        id = p.b;
        if (parts_[id].kind != PartKind::kSequence) {
          add(id, tail);
          return;
        }
        break;
      default:
        return;
    }
  }
}

Id Terms::derive_chain(Id id, uint32_t cls, uint32_t context) {
  if (id == kNil || id == kDead) return kFalse;
  if (id == kAll) return kTrue;
  const Chain first = chains_[id];
  if (parts_[first.part].kind == PartKind::kSet) {
    return set_has(parts_[first.part].a, cls) ? atom(first.tail) : kFalse;
  }
  const bool remember = first.mask == 0;
  const uint64_t key = pack(id, cls);
  if (remember) {
    const uint32_t known = memo_.find(key);
    if (known != FlatMap::kMissing) return known;
  }
  std::vector<Id> out;
  Id guard = kTrue;
  for (Id rest = id; rest != kNil && rest != kDead;) {
    if (rest == kAll) {
      out.push_back(guard);
      break;
    }
    const Chain cell = chains_[rest];
    if (guard == kTrue) {
      derive_part(cell.part, cell.tail, cls, context, out);
    } else if (may_take(cell.part, cls)) {
      std::vector<Id> inner;
      derive_part(cell.part, cell.tail, cls, context, inner);
      out.push_back(conjoin(guard, make_or(std::move(inner))));
    }
    guard = conjoin(guard, empty_condition(cell.part, cls, context));
    if (guard == kFalse) break;
    work(1);
    rest = cell.tail;
  }
  const Id result = make_or(std::move(out));
  if (remember) {
    if (++memo_entries_ > kMaxRemembered) {
      memo_ = FlatMap{};
      memo_entries_ = 1;
    }
    memo_.set(key, result);
  }
  return result;
}

}  // namespace constrain::regex
