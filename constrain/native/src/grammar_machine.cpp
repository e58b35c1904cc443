#include "constrain/grammar_machine.hpp"

#include <algorithm>

#include "constrain/errors.hpp"

namespace constrain {
namespace {

constexpr uint32_t kNone = GrammarTables::kNone;
constexpr uint32_t kUnset = 0xFFFFFFFFu;
constexpr uint32_t kBroken = kUnset - 1;
constexpr uint32_t kUnionBudget = 4096;     // entries that one step may make by unions in depth
constexpr uint32_t kLeastBudget = 64;
constexpr uint32_t kShortList = 8;          // arrivals of an item that are looked through
constexpr size_t kResolveBudget = 200;      // items looked at to see an obligation met

uint32_t hash_items(const uint32_t* words, size_t count) {
  uint64_t h = 0x2545F4914F6CDD1Dull + count;
  for (size_t i = 0; i < count; ++i) {
    h ^= words[i];
    h *= 0xBF58476D1CE4E5B9ull;
    h ^= h >> 29;
  }
  return static_cast<uint32_t>(h ^ h >> 32);
}

}  // namespace

GrammarMachine::GrammarMachine(std::shared_ptr<const Program> program, LexicalPool& pool)
    : foreign_(*program, pool),
      tables_(program->args, foreign_.all_possible()),
      units_(tables_, pool.regions(), foreign_.first_bytes()),
      states_(tables_.states()),
      union_budget_(kUnionBudget),
      seen_(1024) {
  slots_.resize(states_);
  conjunctions_.push_back({});
  list_slots_.resize(256);
}

// -- keys ---------------------------------------------------------------------------------------

uint32_t GrammarMachine::key_of(uint32_t state, uint32_t obligation) {
  if (obligation == 0) return state;
  const uint64_t both = uint64_t{state} << 32 | obligation;
  const auto [at, fresh] = pair_ids_.try_emplace(both, states_ + uint32_t(pairs_.size()));
  if (fresh) {
    pairs_.push_back({state, obligation});
    slots_.push_back({});
  }
  return at->second;
}

GrammarMachine::Slot& GrammarMachine::slot(uint32_t key) {
  if (!place_key(key)) return slots_[key];
  if (place_slots_.size() < foreign_.places()) place_slots_.resize(foreign_.places() * 2);
  return place_slots_[key & ~kPlaceKey];
}

uint32_t GrammarMachine::conjunction(const std::vector<uint32_t>& obligations) {
  for (uint32_t id = 0; id < conjunctions_.size(); ++id) {
    if (conjunctions_[id] == obligations) return id;
  }
  if (conjunctions_.size() >= 100'000) {
    throw LimitError("the grammar's lookaheads need too many combinations", "obligations");
  }
  conjunctions_.push_back(obligations);
  return uint32_t(conjunctions_.size() - 1);
}

uint32_t GrammarMachine::also(uint32_t id, uint32_t obligation) {
  if (obligation == 0) return id;
  const uint64_t key = uint64_t{id} << 32 | obligation;
  if (const auto known = also_.find(key); known != also_.end()) return known->second;
  std::vector<uint32_t> both = conjunctions_[id];
  const auto at = std::lower_bound(both.begin(), both.end(), obligation);
  if (at == both.end() || *at != obligation) both.insert(at, obligation);
  return also_[key] = conjunction(both);
}

uint32_t GrammarMachine::reduce(uint32_t id, uint8_t byte) {
  if (id == 0) return 0;
  while (reduced_.size() <= id) reduced_.emplace_back().fill(kUnset);
  if (reduced_[id][byte] == kUnset) {
    const uint32_t left = reduced(id, byte);
    reduced_[id][byte] = left == kNone ? kBroken : left;
  }
  const uint32_t left = reduced_[id][byte];
  return left == kBroken ? kNone : left;
}

uint32_t GrammarMachine::reduced(uint32_t id, uint8_t byte) {
  std::vector<uint32_t> left;
  for (const uint32_t obligation : conjunctions_[id]) {
    const uint32_t next = tables_.reduce(obligation, byte);
    if (next == kNone) return kNone;
    if (next != 0) left.push_back(next);
  }
  std::sort(left.begin(), left.end());
  left.erase(std::unique(left.begin(), left.end()), left.end());
  return conjunction(left);
}

bool GrammarMachine::ends(uint32_t id) const {
  return std::ranges::all_of(conjunctions_[id], [&](uint32_t o) { return tables_.ends(o); });
}

// -- sets of items --------------------------------------------------------------------------------

void GrammarMachine::begin_set() {
  items_.clear();
  todo_.clear();
  pending_.clear();
  arrivals_.clear();
  arrived_.clear();
  long_list_.clear();
  accepts_ = false;
  unsure_ = false;
  if (++now_ == 0) {
    std::ranges::fill(slots_, Slot{});
    std::ranges::fill(place_slots_, Slot{});
    std::ranges::fill(seen_, Seen{});
    now_ = 1;
  }
}

void GrammarMachine::add(uint32_t key, StackId stacks) {
  Slot& own = slot(key);
  if (own.stamp != now_) {
    own = {now_, uint32_t(items_.size())};
    items_.push_back({key, kUnset});
    arrived_.push_back(kNone);
    long_list_.push_back(0);
  } else if (was_seen(key, stacks)) {
    return;
  }
  const uint32_t at = own.position;
  arrivals_.push_back({at, stacks, arrived_[at]});
  arrived_[at] = uint32_t(arrivals_.size() - 1);
  todo_.push_back(arrived_[at]);
}

// Whether these stacks arrived at this key before, which is there already.
bool GrammarMachine::was_seen(uint32_t key, StackId stacks) {
  uint32_t length = 0;
  const uint32_t position = slot(key).position;
  uint32_t next = arrived_[position];
  for (; next != kNone && length < kShortList; next = arrivals_[next].next, ++length) {
    if (arrivals_[next].stacks == stacks) return true;
  }
  if (next == kNone) return false;
  // A long list: all its stacks are in the table from the moment it became long.
  if (arrivals_.size() * 2 >= seen_.size()) grow_seen();
  if (length == kShortList && !long_list_[position]) {
    long_list_[position] = 1;
    for (uint32_t i = arrived_[position]; i != kNone; i = arrivals_[i].next) {
      insert_seen(key, arrivals_[i].stacks);
    }
  }
  return !insert_seen(key, stacks);
}

// False: it was there.
bool GrammarMachine::insert_seen(uint32_t key, StackId stacks) {
  const size_t mask = seen_.size() - 1;
  size_t at = (key * 0x9E3779B1u ^ stacks * 0x85EBCA77u) & mask;
  for (; seen_[at].stamp == now_; at = (at + 1) & mask) {
    if (seen_[at].key == key && seen_[at].stacks == stacks) return false;
  }
  seen_[at] = {now_, key, stacks};
  return true;
}

void GrammarMachine::grow_seen() {
  std::vector<Seen> old(seen_.size() * 4);
  old.swap(seen_);
  for (const Seen& seen : old) {
    if (seen.stamp == now_) insert_seen(seen.key, seen.stacks);
  }
}

void GrammarMachine::settle(uint32_t at) {
  const uint32_t first = arrived_[at];
  if (arrivals_[first].next == kNone) {
    items_[at].stacks = arrivals_[first].stacks;
    return;
  }
  unite_.clear();
  for (uint32_t i = first; i != kNone; i = arrivals_[i].next) unite_.push_back(arrivals_[i].stacks);
  items_[at].stacks = stacks_.unite(unite_);
}

void GrammarMachine::read(std::span<const Item> from, uint8_t byte) {
  for (const Item& item : from) {
    if (place_key(item.key)) {
      read_place(item, byte);
      continue;
    }
    const uint32_t target = tables_.next(state_of(item.key), byte);
    if (target == kNone) continue;
    const uint32_t obligation = reduce(obligation_of(item.key), byte);
    if (obligation == kNone) continue;
    add(key_of(target, obligation), item.stacks);
  }
}

void GrammarMachine::read_place(const Item& item, uint8_t byte) {
  Config next = place_at(item.key);
  const uint32_t number = next.w[GrammarForeign::kNumber];
  Machine& machine = foreign_.use(number);
  const bool alive = machine.step(next, byte);
  unsure_ = unsure_ || machine.unsure(next);
  if (!alive) return;
  const uint32_t obligation = reduce(next.w[GrammarForeign::kObligation], byte);
  if (obligation == kNone) return;
  add(kPlaceKey | foreign_.place(next, number, obligation), item.stacks);
}

void GrammarMachine::end(StackId stacks, uint32_t obligation) {
  const size_t count = stacks_.entries(stacks).size();
  for (size_t i = 0; i < count; ++i) {
    const GrammarStacks::Entry entry = stacks_.entries(stacks)[i];   // add() moves them
    if (entry.back == GrammarStacks::kBottom) {
      accepts_ = accepts_ || ends(obligation);
      doubt_ = doubt_ || obligation != 0;
    } else {
      add(key_of(entry.back, obligation), entry.below);
    }
  }
}

void GrammarMachine::close() {
  // First what ends: returns lead to states that may end as well.
  while (!todo_.empty()) {
    const Arrival& arrival = arrivals_[todo_.back()];
    const Item item{items_[arrival.at].key, arrival.stacks};
    todo_.pop_back();
    const uint32_t obligation = obligation_of(item.key);
    if (place_key(item.key)) {
      if (foreign_.accepts(item.key & ~kPlaceKey)) end(item.stacks, obligation);
      continue;
    }
    const uint32_t state = state_of(item.key);
    if (tables_.is_final(state)) end(item.stacks, obligation);
    for (const auto& mark : tables_.marks(state)) {
      add(key_of(mark.target, also(obligation, mark.obligation)), item.stacks);
    }
  }
  for (uint32_t at = 0; at < items_.size(); ++at) settle(at);
  call_out();
}

// Calls in order of ranks: when a net is entered, all that enter it at this place are known.  What
// embedded programs read begins here as well; that calls nothing.
void GrammarMachine::call_out() {
  const auto later = [](const Pending& a, const Pending& b) { return a.rank > b.rank; };
  // Coming back to a pure state would only mean to come back once more.
  const auto push = [&](uint32_t back, StackId stacks) {
    return tables_.is_pure(back) ? stacks : stacks_.push(back, stacks);
  };
  const auto collect = [&](const Item& item) {
    if (place_key(item.key)) return;
    const uint32_t obligation = obligation_of(item.key);
    for (const auto& foreign : tables_.foreigns(state_of(item.key))) {
      add(kPlaceKey | foreign_.start(foreign.number, obligation), push(foreign.back, item.stacks));
    }
    for (const auto& call : tables_.calls(state_of(item.key))) {
      pending_.push_back({call.rank, call.callee, call.back, obligation, item.stacks});
      std::push_heap(pending_.begin(), pending_.end(), later);
    }
  };
  for (size_t i = 0; i < items_.size(); ++i) {
    const Item item = items_[i];
    collect(item);
  }
  while (!pending_.empty()) {
    const uint32_t rank = pending_.front().rank;
    todo_.clear();
    while (!pending_.empty() && pending_.front().rank == rank) {
      std::pop_heap(pending_.begin(), pending_.end(), later);
      const Pending call = pending_.back();
      pending_.pop_back();
      add(key_of(call.callee, call.obligation), push(call.back, call.stacks));
    }
    // The callee's start may have been there before, with other stacks.
    for (size_t i = 0; i < todo_.size(); ++i) {
      const uint32_t at = arrivals_[todo_[i]].at;
      if (arrived_[at] != todo_[i]) continue;      // not the last arrival at it
      settle(at);
      const Item item = items_[at];
      collect(item);
    }
  }
  todo_.clear();      // a callee's start neither ends nor has marks
  for (uint32_t at = 0; at < items_.size(); ++at) {
    if (place_key(items_[at].key)) settle(at);
  }
}

bool GrammarMachine::keep() {
  kept_.clear();
  bool doubtful = false;
  for (const Item& item : items_) {
    if (place_key(item.key)) {
      const Config place = place_at(item.key);
      if (!foreign_.reads(place, place.w[GrammarForeign::kNumber])) continue;
    } else if (!tables_.reads(state_of(item.key))) {
      continue;
    }
    doubtful = doubtful || obligation_of(item.key) != 0;
    kept_.push_back(item);
  }
  const bool accepts = accepts_;
  const bool unsure = unsure_;
  if (doubtful) {
    std::vector<Item> sure;
    const std::vector<Item> all = kept_;
    for (const Item& item : all) {
      const Hope found = hope(item.key);
      if (found == Hope::kMet || (found == Hope::kOpen && resolves(item))) sure.push_back(item);
    }
    kept_ = std::move(sure);
    accepts_ = accepts;
    unsure_ = unsure;
  }
  std::sort(kept_.begin(), kept_.end());
  return accepts_ || !kept_.empty();
}

// Most obligations are about one byte: then the state alone decides.
GrammarMachine::Hope GrammarMachine::hope(uint32_t key) {
  if (key < states_) return Hope::kMet;
  if (place_key(key)) return obligation_of(key) == 0 ? Hope::kMet : Hope::kOpen;
  const Pair pair = pairs_[key - states_];
  if (pair.hope != Hope::kUnknown) return pair.hope;
  Hope found = Hope::kBroken;
  for (const auto& range : tables_.ranges(pair.state)) {
    for (uint32_t byte = range.first; byte <= range.last && found != Hope::kMet; ++byte) {
      const uint32_t left = reduce(pair.obligation, uint8_t(byte));
      if (left != kNone) found = left == 0 ? Hope::kMet : Hope::kOpen;
    }
  }
  return pairs_[key - states_].hope = found;
}

bool GrammarMachine::resolves(Item first) {
  std::vector<Item> seen{first};
  const auto follow = [&](uint32_t key, StackId stacks) {
    begin_set();
    add(key, stacks);
    close();
    if (accepts_) return true;
    for (const Item& next : items_) {
      const Hope found = hope(next.key);
      if (found == Hope::kMet) return true;   // every state can be completed
      if (found == Hope::kBroken) continue;
      if (std::ranges::find(seen, next) == seen.end()) seen.push_back(next);
    }
    return false;
  };
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen.size() > kResolveBudget) return true;     // in doubt it can be met
    const Item item = seen[i];
    const uint32_t obligation = obligation_of(item.key);
    if (place_key(item.key)) {
      for (uint32_t byte = 0; byte < 256; ++byte) {
        const uint32_t left = reduce(obligation, uint8_t(byte));
        if (left == kNone) continue;
        Config next = place_at(item.key);
        const uint32_t number = next.w[GrammarForeign::kNumber];
        if (!foreign_.use(number).step(next, uint8_t(byte))) continue;
        if (left == 0 || follow(kPlaceKey | foreign_.place(next, number, left), item.stacks)) {
          return true;
        }
      }
      continue;
    }
    uint32_t last_target = kNone, last_left = kNone;
    for (const auto& range : tables_.ranges(state_of(item.key))) {
      for (uint32_t byte = range.first; byte <= range.last; ++byte) {
        const uint32_t left = reduce(obligation, uint8_t(byte));
        if (left == 0) return true;
        if (left == kNone || (range.target == last_target && left == last_left)) continue;
        last_target = range.target;
        last_left = left;
        if (follow(key_of(range.target, left), item.stacks)) return true;
      }
    }
  }
  return false;
}

Config GrammarMachine::pack() {
  Config config;
  if (kept_.size() == 1 && place_key(kept_[0].key) && obligation_of(kept_[0].key) == 0 &&
      !unsure_) {
    config = place_at(kept_[0].key);
    config.w[kForeign] = (config.w[GrammarForeign::kNumber] + 1) | (accepts_ ? kAccepts : 0);
    config.w[kStacks] = kept_[0].stacks;
    return config;
  }
  if (kept_.size() <= kInline) {
    config.w[0] = uint32_t(kept_.size());
    for (size_t i = 0; i < kept_.size(); ++i) {
      config.w[1 + 2 * i] = kept_[i].key;
      config.w[2 + 2 * i] = kept_[i].stacks;
    }
  } else {
    config.w[0] = kMany;
    config.w[1] = list_id(kept_);
  }
  if (accepts_) config.w[0] |= kAccepts;
  if (unsure_) config.w[0] |= kUnsure;
  return config;
}

std::span<const GrammarMachine::Item> GrammarMachine::items(const Config& config) const {
  const uint32_t count = config.w[0] & ~(kAccepts | kUnsure);
  static_assert(sizeof(Item) == 2 * sizeof(uint32_t));
  if (count != kMany) return {reinterpret_cast<const Item*>(&config.w[1]), count};
  const List& list = lists_[config.w[1]];
  return {list_items_.data() + list.begin, list.count};
}

// -- the machine ----------------------------------------------------------------------------------

Config GrammarMachine::start() {
  stacks_.set_budget(kUnionBudget);
  begin_set();
  add(tables_.start(), GrammarStacks::kOnlyBottom);
  close();
  keep();
  return pack();
}

bool GrammarMachine::step(Config& config, uint8_t byte) {
  if (is_place(config)) {
    config.w[kForeign] &= ~kAccepts;
    return foreign_.use(number_of(config)).step(config, byte) && settle_place(config);
  }
  if ((config.w[0] & ~kAccepts) == 1 && config.w[1] < states_) {
    const uint32_t target = tables_.next(config.w[1], byte);
    if (target == kNone) return false;
    if (tables_.is_plain(target)) {
      config.w[0] = 1;
      config.w[1] = target;
      return true;
    }
  }
  stacks_.set_budget(union_budget_);
  begin_set();
  read(items(config), byte);
  if (unsure_) {
    config.w[0] |= kUnsure;
    return true;
  }
  if (items_.empty()) return false;
  return finish(config);
}

bool GrammarMachine::settle_place(Config& config) {
  const uint32_t number = number_of(config);
  const Machine& machine = foreign_.machine(number);
  // A token with this byte in it is tried from its start: what it returns to does not matter.
  if (machine.unsure(config)) return true;
  if (!foreign_.machine(number).accepts(config)) return true;
  stacks_.set_budget(union_budget_);
  begin_set();
  add(kPlaceKey | foreign_.place(config, number, 0), config.w[kStacks]);
  return finish(config);
}

bool GrammarMachine::finish(Config& config) {
  close();
  // Where canonical sets are too expensive, less is tried: it changes no answer.
  if (stacks_.budget() == 0) {
    union_budget_ = std::max(kLeastBudget, union_budget_ / 2);
  } else if (union_budget_ < kUnionBudget) {
    ++union_budget_;
  }
  if (!keep()) return false;
  config = pack();
  return true;
}

void GrammarMachine::begin_trial() {
  stacks_.begin_trial();
  foreign_.begin_trial();
  trial_ = true;
  trial_lists_ = lists_.size();
  trial_items_ = list_items_.size();
}

void GrammarMachine::end_trial() {
  stacks_.end_trial();
  foreign_.end_trial();
  if (!trial_) return;
  trial_ = false;
  if (lists_.size() == trial_lists_) return;
  lists_.resize(trial_lists_);
  list_items_.resize(trial_items_);
  rehash_lists();
}

uint32_t GrammarMachine::list_id(std::span<const Item> found) {
  const uint32_t hash = hash_items(&found[0].key, found.size() * 2);
  const size_t mask = list_slots_.size() - 1;
  size_t at = hash & mask;
  while (list_slots_[at] != 0) {
    const uint32_t id = list_slots_[at] - 1;
    const List& list = lists_[id];
    if (list.hash == hash &&
        std::ranges::equal(std::span(list_items_.data() + list.begin, list.count), found)) {
      return id;
    }
    at = (at + 1) & mask;
  }
  const auto id = uint32_t(lists_.size());
  lists_.push_back({uint32_t(list_items_.size()), uint32_t(found.size()), hash});
  list_items_.insert(list_items_.end(), found.begin(), found.end());
  list_slots_[at] = id + 1;
  if (lists_.size() * 2 > list_slots_.size()) {
    list_slots_.resize(list_slots_.size() * 2);
    rehash_lists();
  }
  return id;
}

void GrammarMachine::rehash_lists() {
  std::ranges::fill(list_slots_, 0u);
  const size_t mask = list_slots_.size() - 1;
  for (size_t id = 0; id < lists_.size(); ++id) {
    size_t at = lists_[id].hash & mask;
    while (list_slots_[at] != 0) at = (at + 1) & mask;
    list_slots_[at] = uint32_t(id) + 1;
  }
}

size_t GrammarMachine::bytes() const {
  size_t sum = sizeof(*this) + tables_.bytes() + stacks_.bytes() + units_.bytes() + frames_.bytes();
  sum += foreign_.bytes() + pairs_.capacity() * (sizeof(Pair) + 48);
  sum += (slots_.capacity() + place_slots_.capacity()) * sizeof(Slot);
  for (const auto& list : conjunctions_) sum += sizeof(list) + list.capacity() * 4;
  sum += also_.size() * 40 + reduced_.capacity() * 1024 + seen_.capacity() * sizeof(Seen);
  sum += lists_.capacity() * sizeof(List) + list_items_.capacity() * sizeof(Item);
  return sum + list_slots_.capacity() * 4;
}

}  // namespace constrain
