// Parts and chains: their constructors (rules in regex_terms.hpp).
#include "regex_terms.hpp"

#include <algorithm>
#include <utility>

#include "constrain/errors.hpp"

namespace constrain::regex {

namespace {

// Lengths saturate here, below the values that mean something else.
constexpr uint32_t kMaxLength = 0xFFFFFFF0u;
// Bounds of repeats beyond this are left as they were written instead of being combined.
constexpr uint64_t kMaxCount = 0x7FFFFFFFu;

// Steps of one transition, in members of unions: some tenths of a second.
constexpr size_t kMaxWork = size_t{1} << 22;

uint32_t add_length(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>(std::min<uint64_t>(uint64_t{a} + b, kMaxLength));
}

uint32_t times_length(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>(std::min<uint64_t>(uint64_t{a} * b, kMaxLength));
}

Nullable both(Nullable a, Nullable b) {
  if (a == Nullable::kNever || b == Nullable::kNever) return Nullable::kNever;
  return a == Nullable::kAlways && b == Nullable::kAlways ? Nullable::kAlways : Nullable::kDepends;
}

Nullable either(Nullable a, Nullable b) {
  if (a == Nullable::kAlways || b == Nullable::kAlways) return Nullable::kAlways;
  return a == Nullable::kNever && b == Nullable::kNever ? Nullable::kNever : Nullable::kDepends;
}

uint32_t hash32(const uint32_t* words, size_t count) {
  return static_cast<uint32_t>(hash_words(words, count));
}

}  // namespace

void HashIndex::insert(uint32_t hash, Id id) {
  if ((used_ + 1) * 2 > slots_.size()) {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(old.empty() ? 64 : old.size() * 2, Slot{});
    const size_t limit = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (slot.id == kInfinity) continue;
      size_t i = slot.hash & limit;
      while (slots_[i].id != kInfinity) i = (i + 1) & limit;
      slots_[i] = slot;
    }
  }
  const size_t limit = slots_.size() - 1;
  size_t i = hash & limit;
  while (slots_[i].id != kInfinity) i = (i + 1) & limit;
  slots_[i] = {hash, id};
  ++used_;
}

Terms::Terms(size_t num_classes)
    : num_classes_(num_classes), set_words_((num_classes + 63) / 64), class_context_(num_classes) {
  parts_.push_back(Part{});
  Part empty;
  empty.kind = PartKind::kEmpty;
  empty.nullable = Nullable::kAlways;
  parts_.push_back(empty);
  chains_.resize(3);
  for (Id id : {kNil, kAll, kDead}) chains_[id].skeleton = id;
  chains_[kNil].nullable = Nullable::kAlways;
  chains_[kAll].nullable = Nullable::kAlways;
  formulas_.resize(2);
  formulas_[kFalse].kind = FormulaKind::kFalse;
  formulas_[kFalse].min_length = kInfinity;
  formulas_[kTrue].kind = FormulaKind::kTrue;
  formulas_[kTrue].plain = true;
  formulas_[kTrue].live = true;
  std::vector<uint64_t> full(set_words_, 0);
  for (size_t cls = 0; cls < num_classes; ++cls) full[cls >> 6] |= uint64_t{1} << (cls & 63);
  anything_ = repeat(set_part(intern_set(full)), 0, kInfinity);
}

void Terms::set_budget(size_t terms) {
  budget_ = parts_.size() + chains_.size() + formulas_.size() + members_.size() + terms;
}

void Terms::charge() {
  if (parts_.size() + chains_.size() + formulas_.size() + members_.size() >= budget_) {
    throw LimitError("the regular expression needs too many states", "max_states");
  }
}

void Terms::work(size_t steps) {
  work_ += steps;
  if (work_ > kMaxWork) {
    throw LimitError("the regular expression is too ambiguous", "max_states");
  }
}

bool Terms::lasting(Id id) const {
  const Formula& f = formulas_[id];
  switch (f.kind) {
    case FormulaKind::kTrue: return true;
    case FormulaKind::kAtom: {
      const Chain& c = chains_[f.a];
      return f.a == kAll ||
             (f.a > kDead && part_lasts(c.part) && chain_matches_anywhere(c.tail));
    }
    case FormulaKind::kOr:
      for (const Id member : members(f)) {
        if (lasting(member)) return true;
      }
      return false;
    default: return false;
  }
}

bool Terms::part_lasts(Id id) const {
  if (id == anything_) return true;
  const Part& p = parts_[id];
  if (p.kind == PartKind::kSequence) return part_lasts(p.a) && matches_anywhere(p.b);
  if (p.kind != PartKind::kChoice) return false;
  for (const Id choice : choices(p)) {
    if (part_lasts(choice)) return true;
  }
  return false;
}

bool Terms::chain_matches_anywhere(Id chain) const {
  for (; chain > kDead; chain = chains_[chain].tail) {
    if (!matches_anywhere(chains_[chain].part)) return false;
  }
  return chain != kDead;
}

bool Terms::matches_anywhere(Id id) const {
  const Part& p = parts_[id];
  switch (p.kind) {
    case PartKind::kEmpty:
    case PartKind::kSet: return true;
    case PartKind::kSequence: return matches_anywhere(p.a) && matches_anywhere(p.b);
    case PartKind::kChoice:
      for (const Id choice : choices(p)) {
        if (matches_anywhere(choice)) return true;
      }
      return false;
    case PartKind::kRepeat: return p.b == 0 || matches_anywhere(p.a);
    default: return false;   // kState too: not worth a search
  }
}

size_t Terms::bytes() const {
  return set_bits_.capacity() * sizeof(uint64_t) + class_context_.capacity() * sizeof(uint32_t) +
         parts_.capacity() * sizeof(Part) +
         automaton_states_.capacity() * sizeof(AutomatonState) +
         automaton_edges_.capacity() * sizeof(AutomatonEdge) + choices_.capacity() * sizeof(Id) +
         chains_.capacity() * sizeof(Chain) + formulas_.capacity() * sizeof(Formula) +
         members_.capacity() * sizeof(Id) + set_index_.bytes() + part_index_.bytes() +
         chain_index_.bytes() + formula_index_.bytes() + memo_.bytes() +
         skeletons_.bytes() + stamps_.capacity() * sizeof(uint32_t);
}

Id Terms::intern_set(std::span<const uint64_t> bits) {
  const auto* words = reinterpret_cast<const uint32_t*>(bits.data());
  const uint32_t hash = hash32(words, bits.size() * 2);
  const Id known = set_index_.find(hash, [&](Id id) {
    return std::equal(bits.begin(), bits.end(), set_bits_.begin() + size_t{id} * set_words_);
  });
  if (known != kInfinity) return known;
  const Id id = static_cast<Id>(set_bits_.size() / set_words_);
  set_bits_.insert(set_bits_.end(), bits.begin(), bits.end());
  set_index_.insert(hash, id);
  return id;
}

Id Terms::intern_part(const Part& part) {
  // The members of a choice are compared by content, everything else by its three words.
  const bool is_choice = part.kind == PartKind::kChoice;
  uint32_t hash;
  if (is_choice) {
    hash = hash32(choices_.data() + part.a, part.b);
  } else {
    const uint32_t words[4] = {static_cast<uint32_t>(part.kind), part.a, part.b, part.c};
    hash = hash32(words, 4);
  }
  const Id known = part_index_.find(hash, [&](Id id) {
    const Part& other = parts_[id];
    if (other.kind != part.kind || other.b != part.b) return false;
    if (!is_choice) return other.a == part.a && other.c == part.c;
    return std::equal(choices_.begin() + part.a, choices_.begin() + part.a + part.b,
                      choices_.begin() + other.a);
  });
  if (known != kInfinity) {
    if (is_choice) choices_.resize(part.a);
    return known;
  }
  charge();
  const Id id = static_cast<Id>(parts_.size());
  parts_.push_back(part);
  part_index_.insert(hash, id);
  return id;
}

Id Terms::set_part(Id set) {
  const uint64_t* bits = set_bits_.data() + size_t{set} * set_words_;
  if (std::all_of(bits, bits + set_words_, [](uint64_t word) { return word == 0; })) {
    return kFailPart;
  }
  Part part;
  part.kind = PartKind::kSet;
  part.a = set;
  part.min_length = 1;
  return intern_part(part);
}

Id Terms::look(Id body, bool negative) {
  Part part;
  part.kind = PartKind::kLook;
  part.a = body;
  part.b = negative ? 1 : 0;
  part.nullable = Nullable::kDepends;
  part.contextual = true;
  part.mask = parts_[body].mask;
  return intern_part(part);
}

Id Terms::behind(uint32_t bit) {
  Part part;
  part.kind = PartKind::kBehind;
  part.a = bit;
  part.nullable = Nullable::kDepends;
  part.contextual = true;
  part.mask = uint32_t{1} << bit;
  return intern_part(part);
}

Id Terms::end() {
  Part part;
  part.kind = PartKind::kEnd;
  part.nullable = Nullable::kDepends;
  part.contextual = true;
  return intern_part(part);
}

Id Terms::automaton(std::span<const AutomatonRow> rows) {
  const uint32_t count = static_cast<uint32_t>(rows.size());
  std::vector<std::vector<uint32_t>> sources(count);
  std::vector<uint32_t> length(count, kMaxLength);  // to the nearest final state
  std::vector<uint32_t> queue;
  for (uint32_t s = 0; s < count; ++s) {
    for (const auto& [set, target] : rows[s].edges) sources[target].push_back(s);
    if (rows[s].final) {
      length[s] = 0;
      queue.push_back(s);
    }
  }
  for (size_t i = 0; i < queue.size(); ++i) {
    for (uint32_t source : sources[queue[i]]) {
      if (length[source] != kMaxLength) continue;
      length[source] = length[queue[i]] + 1;
      queue.push_back(source);
    }
  }
  // Parts first, so that edges can name them; a state that leads nowhere has none.
  const uint32_t base = static_cast<uint32_t>(automaton_states_.size());
  automaton_states_.resize(base + count);
  std::vector<Id> part_of(count, kFailPart);
  for (uint32_t s = 0; s < count; ++s) {
    const bool leads = std::any_of(rows[s].edges.begin(), rows[s].edges.end(), [&](const auto& e) {
      return length[e.second] != kMaxLength;
    });
    if (length[s] == kMaxLength) continue;
    if (!leads) {
      part_of[s] = kEmptyPart;
      continue;
    }
    Part part;
    part.kind = PartKind::kState;
    part.a = base + s;
    part.nullable = rows[s].final ? Nullable::kAlways : Nullable::kNever;
    part.min_length = length[s];
    part_of[s] = intern_part(part);
  }
  for (uint32_t s = 0; s < count; ++s) {
    AutomatonState& state = automaton_states_[base + s];
    state.first_edge = static_cast<uint32_t>(automaton_edges_.size());
    for (const auto& [set, target] : rows[s].edges) {
      if (part_of[target] != kFailPart) automaton_edges_.push_back({set, part_of[target]});
    }
    state.num_edges = static_cast<uint32_t>(automaton_edges_.size()) - state.first_edge;
  }
  return count == 0 ? kFailPart : part_of[0];
}

Id Terms::repeat(Id body, uint32_t least, uint32_t most) {
  const Part x = parts_[body];
  if (most == 0 || body == kEmptyPart) return kEmptyPart;
  if (body == kFailPart) return least == 0 ? kEmptyPart : kFailPart;
  if (x.nullable == Nullable::kAlways) least = 0;
  if (least == 1 && most == 1) return body;
  if (x.kind == PartKind::kLook || x.kind == PartKind::kBehind || x.kind == PartKind::kEnd) {
    return least == 0 ? kEmptyPart : body;
  }
  if (x.kind == PartKind::kRepeat) {
    // (y{a,b}){least,most} is y{a*least,b*most} where the intervals [a*n, b*n] leave no gap; gaps
    // are widest for the smallest n.
    const uint64_t a = x.b, b = x.c, n = least;
    const bool open = x.c == kInfinity || (n + 1) * a <= n * b + 1;
    const bool dense = least == most || (n == 0 ? a <= 1 : open);
    const uint64_t low = a * n;
    const bool infinite = x.c == kInfinity || most == kInfinity;
    const uint64_t high = infinite ? 0 : b * most;
    if (dense && low < kMaxCount && high < kMaxCount) {
      return repeat(x.a, static_cast<uint32_t>(low),
                    infinite ? kInfinity : static_cast<uint32_t>(high));
    }
  }
  Part part;
  part.kind = PartKind::kRepeat;
  part.a = body;
  part.b = least;
  part.c = most;
  part.nullable = least == 0 ? Nullable::kAlways : x.nullable;
  part.contextual = x.contextual;
  part.min_length = times_length(x.min_length, least);
  part.mask = x.mask;
  return intern_part(part);
}

// Neighbours that repeat one part: x{a,b} x{c,d} is x{a+c,b+d}.  Two single parts stay as they are.
bool Terms::add_up(Id first, Id second, Id& sum) {
  const Part& p = parts_[first];
  const Part& q = parts_[second];
  const bool p_repeats = p.kind == PartKind::kRepeat;
  const bool q_repeats = q.kind == PartKind::kRepeat;
  if (!p_repeats && !q_repeats) return false;
  const Id x = p_repeats ? p.a : first;
  if ((q_repeats ? q.a : second) != x) return false;
  const uint64_t low = uint64_t{p_repeats ? p.b : 1} + (q_repeats ? q.b : 1);
  const bool infinite = (p_repeats && p.c == kInfinity) || (q_repeats && q.c == kInfinity);
  const uint64_t high = infinite ? 0 : uint64_t{p_repeats ? p.c : 1} + (q_repeats ? q.c : 1);
  if (low >= kMaxCount || high >= kMaxCount) return false;
  sum = repeat(x, static_cast<uint32_t>(low), infinite ? kInfinity : static_cast<uint32_t>(high));
  return true;
}

Id Terms::sequence(std::vector<Id> list) {
  std::vector<Id> flat;
  for (Id id : list) {
    while (parts_[id].kind == PartKind::kSequence) {
      flat.push_back(parts_[id].a);
      id = parts_[id].b;
    }
    flat.push_back(id);
  }
  Id rest = kEmptyPart;
  for (size_t i = flat.size(); i-- > 0;) {
    Id first = flat[i];
    while (true) {
      if (first == kFailPart || rest == kFailPart) return kFailPart;
      if (first == kEmptyPart) break;
      if (rest == kEmptyPart) {
        rest = first;
        break;
      }
      const Part& p = parts_[first];
      const Part& r = parts_[rest];
      if (rest == anything_ && p.nullable == Nullable::kAlways) break;
      if (p.kind == PartKind::kEnd && !r.contextual) {
        rest = r.nullable == Nullable::kAlways ? first : kFailPart;
        break;
      }
      const bool longer = r.kind == PartKind::kSequence;
      Id sum;
      if (add_up(first, longer ? r.a : rest, sum)) {
        rest = parts_[rest].kind == PartKind::kSequence ? parts_[rest].b : kEmptyPart;
        first = sum;
        continue;
      }
      Part part;
      part.kind = PartKind::kSequence;
      part.a = first;
      part.b = rest;
      part.nullable = both(p.nullable, r.nullable);
      part.contextual = p.contextual || r.contextual;
      part.min_length = add_length(p.min_length, r.min_length);
      part.mask = p.mask | (p.nullable == Nullable::kNever ? 0 : r.mask);
      rest = intern_part(part);
      break;
    }
  }
  return rest;
}

Id Terms::choice(std::vector<Id> list) {
  std::vector<Id> flat;
  std::vector<uint64_t> united;
  for (Id id : list) {
    const Part& p = parts_[id];
    if (p.kind == PartKind::kChoice) {
      // Members of a choice are no choices, but may be a set.
      for (uint32_t i = 0; i < p.b; ++i) flat.push_back(choices_[p.a + i]);
    } else if (p.kind != PartKind::kFail) {
      flat.push_back(id);
    }
  }
  std::sort(flat.begin(), flat.end());
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  size_t kept = 0;
  size_t sets = 0;
  Id last_set = kFailPart;
  bool optional = false;
  bool nullable = false;
  for (Id id : flat) {
    const Part& p = parts_[id];
    if (p.kind == PartKind::kSet) {
      if (united.empty()) united.assign(set_words_, 0);
      for (size_t w = 0; w < set_words_; ++w) united[w] |= set_bits_[size_t{p.a} * set_words_ + w];
      ++sets;
      last_set = id;
    } else if (p.kind == PartKind::kEmpty) {
      optional = true;
    } else {
      nullable = nullable || p.nullable == Nullable::kAlways;
      flat[kept++] = id;
    }
  }
  flat.resize(kept);
  if (sets == 1) flat.push_back(last_set);
  if (sets > 1) flat.push_back(set_part(intern_set(united)));
  if (flat.empty()) return optional ? kEmptyPart : kFailPart;
  Id result = flat[0];
  if (flat.size() > 1) {
    std::sort(flat.begin(), flat.end());
    Part part;
    part.kind = PartKind::kChoice;
    part.a = static_cast<uint32_t>(choices_.size());
    part.b = static_cast<uint32_t>(flat.size());
    part.min_length = kMaxLength;
    for (Id id : flat) {
      const Part& p = parts_[id];
      part.nullable = either(part.nullable, p.nullable);
      part.contextual = part.contextual || p.contextual;
      part.min_length = std::min(part.min_length, p.min_length);
      part.mask |= p.mask;
    }
    choices_.insert(choices_.end(), flat.begin(), flat.end());
    result = intern_part(part);
  }
  return optional && !nullable ? repeat(result, 0, 1) : result;
}

Id Terms::chain(Id part, Id tail) {
  if (parts_[part].kind != PartKind::kSequence) return prepend(part, tail);
  std::vector<Id> spine;
  while (parts_[part].kind == PartKind::kSequence) {
    spine.push_back(parts_[part].a);
    part = parts_[part].b;
  }
  tail = prepend(part, tail);
  for (size_t i = spine.size(); i-- > 0;) tail = prepend(spine[i], tail);
  return tail;
}

Id Terms::find_chain(Id part, Id tail) const {
  const uint32_t words[2] = {part, tail};
  return chain_index_.find(hash32(words, 2), [&](Id id) {
    return chains_[id].part == part && chains_[id].tail == tail;
  });
}

Id Terms::prepend(Id part, Id tail) {
  while (true) {
    if (part == kEmptyPart) return tail;
    if (part == kFailPart || tail == kDead) return kDead;
    const Part& p = parts_[part];
    const Chain& k = chains_[tail];
    if (tail == kAll && p.nullable == Nullable::kAlways) return kAll;
    if (tail == kNil && part == anything_) return kAll;
    if (p.kind == PartKind::kEnd) {
      if (k.min_length > 0) return kDead;
      if (!k.contextual) return k.nullable == Nullable::kAlways ? kNil : kDead;
    }
    Id sum;
    if (tail <= kDead || !add_up(part, k.part, sum)) break;
    part = sum;
    tail = chains_[tail].tail;
  }
  const Id known = find_chain(part, tail);
  if (known != kInfinity) return known;
  charge();
  const Part& p = parts_[part];
  const Chain& k = chains_[tail];
  Chain cell;
  cell.part = part;
  cell.tail = tail;
  cell.nullable = both(p.nullable, k.nullable);
  cell.contextual = p.contextual || k.contextual;
  cell.min_length = add_length(p.min_length, k.min_length);
  cell.mask = p.mask | (p.nullable == Nullable::kNever ? 0 : k.mask);
  const uint64_t bones = pack(p.kind == PartKind::kRepeat ? p.a : part, k.skeleton);
  cell.skeleton = skeletons_.find(bones);
  if (cell.skeleton == FlatMap::kMissing) {
    cell.skeleton = num_skeletons_++;
    skeletons_.set(bones, cell.skeleton);
  }
  const Id id = static_cast<Id>(chains_.size());
  chains_.push_back(cell);
  const uint32_t words[2] = {part, tail};
  chain_index_.insert(hash32(words, 2), id);
  return id;
}

}  // namespace constrain::regex
