#include "constrain/session.hpp"

#include <algorithm>

#include "constrain/errors.hpp"
#include "constrain/poll.hpp"

namespace constrain {
namespace {

constexpr uint32_t kBetweenChecks = 8;

// Bytes that have no alternative, up to a special token.
std::string forced_from(Machine& machine, Config config, size_t limit) {
  std::string text;
  while (text.size() < limit && !machine.accepts(config)) {
    int only = -1;
    Config behind;
    for (int byte = 0; byte < 256; ++byte) {
      Config next = config;
      if (!machine.step(next, static_cast<uint8_t>(byte))) continue;
      if (only >= 0 || byte == kTokenMark) return text;   // a token that writes no text
      only = byte;
      behind = next;
    }
    if (only < 0) return text;
    text.push_back(static_cast<char>(only));
    config = behind;
  }
  return text;
}

}  // namespace

Lane::Lane(Vocabulary& vocabulary, Shard& shard, const MachineFactory& factory, size_t max_memory)
    : vocabulary_(vocabulary), shard_(shard), factory_(factory), max_memory_(max_memory) {
  shard_.trim();
  try {
    rebuild();
  } catch (...) {
    discard_after_exception();
    throw;
  }
  if (over_limit()) {
    throw LimitError("the constraint alone needs more than max_memory (" +
                         std::to_string(max_memory_) + " bytes)",
                     "max_memory");
  }
}

size_t Lane::bytes() const {
  if (!machine_) return 0;
  return machine_->bytes() + states_->bytes() + masks_->bytes() + budget_->bytes();
}

void Lane::rebuild() {
  discard_machine();
  states_ = std::make_unique<StateTable>();
  masks_ = std::make_unique<MaskCache>(vocabulary_.words(), max_memory_ / 4);
  shard_generation_ = shard_.generation();
  ++generation_;
  std::unique_ptr<Machine> machine = factory_(shard_.pool());
  budget_ = std::make_unique<Budget>(vocabulary_, shard_, *machine, *states_);
  start_ = states_->intern(machine->start());
  machine_ = std::move(machine);
  // What nearly all JSON needs is made now, not under the first mask of the vocabulary.
  if (machine_->gap(config(start_)) != kNoGap) shard_.tables().get(shard_.pool().common(), 0);
}

void Lane::discard_machine() {
  budget_.reset();
  machine_.reset();
}

void Lane::discard_after_exception() {
  discard_machine();
  try {
    throw;
  } catch (const DeadlineError&) {
    shard_.discard();
  } catch (const Error&) {
    // The program is at fault, and the pool as good as before.
  } catch (...) {
    shard_.discard();
  }
}

void Lane::prepare() {
  shard_.trim();
  // No machine: the last rebuild was interrupted by an exception.
  // Adding up what is held costs as much as a mask: not every time.
  const bool over = ++prepared_ % kBetweenChecks == 0 && machine_ && over_limit();
  if (!machine_ || shard_generation_ != shard_.generation() || over) rebuild();
}

StateId Lane::advance(StateId state, uint32_t token) {
  const std::string_view text = vocabulary_.spelling(token);
  if (text.empty()) return kNoState;
  Config config = states_->config(state);
  for (const char c : text) {
    if (!machine_->step(config, static_cast<uint8_t>(c))) return kNoState;
  }
  return states_->intern(config);
}

StateId Lane::follow(StateId state, int64_t token, bool& finished) {
  const bool eos = vocabulary_.is_eos(token);
  if (finished) return eos ? state : kNoState;
  if (token < 0 || token >= vocabulary_.size()) return kNoState;
  const StateId next = advance(state, static_cast<uint32_t>(token));
  if (next != kNoState || !eos || !accepts(state)) return next;
  finished = true;
  return state;
}

bool Lane::fill(StateId state, uint32_t* row) {
  LexicalTables& tables = shard_.tables();
  const size_t words = vocabulary_.words();
  if (!masks_->load(state, tables.generation(), row)) {
    const LexicalTable* base = shard_.filler().fill(*machine_, states_->config(state), row);
    if (accepts(state)) or_words(row, vocabulary_.eos_words());
    masks_->store(state, base, row);
  }
  return any_bit(row, words);
}

Constraint::Constraint(std::shared_ptr<Vocabulary> vocabulary, MachineFactory factory,
                       size_t max_memory)
    : vocabulary_(std::move(vocabulary)), factory_(std::move(factory)), max_memory_(max_memory) {
  Shard& shard = vocabulary_->shard(0);
  lock_or_poll(shard.mutex());
  const std::lock_guard lock(shard.mutex(), std::adopt_lock);
  lanes_[0] = std::make_unique<Lane>(*vocabulary_, shard, factory_, max_memory_);
  made_[0].store(lanes_[0].get(), std::memory_order_release);
}

Lane* Constraint::lane(size_t index) {
  if (Lane* made = existing(index)) return made;
  const std::lock_guard making(making_);
  if (Lane* made = existing(index)) return made;
  if (refused_[index]) return nullptr;
  refused_[index] = true;   // until it is there
  const size_t share = max_memory_ / kMostLanes;
  try {
    Shard& shard = vocabulary_->shard(index);
    lock_or_poll(shard.mutex());
    const std::lock_guard lock(shard.mutex(), std::adopt_lock);
    lanes_[index] = std::make_unique<Lane>(*vocabulary_, shard, factory_, share);
    if (lanes_[index]->bytes() > share / 2) {
      lanes_[index].reset();
      return nullptr;
    }
  } catch (const LimitError&) {
    return nullptr;
  } catch (...) {
    refused_[index] = false;
    throw;
  }
  {
    Lane& first = *lanes_[0];
    lock_or_poll(first.mutex());
    const std::lock_guard lock(first.mutex(), std::adopt_lock);
    first.set_max_memory(first.max_memory() - share);
  }
  refused_[index] = false;
  made_[index].store(lanes_[index].get(), std::memory_order_release);
  return lanes_[index].get();
}

size_t Constraint::bytes() {
  size_t total = 0;
  for (size_t i = 0; i < kMostLanes; ++i) {
    Lane* lane = existing(i);
    if (!lane) continue;
    lock_or_poll(lane->mutex());
    const std::lock_guard lock(lane->mutex(), std::adopt_lock);
    total += lane->bytes();
  }
  return total;
}

MatcherLock::MatcherLock(const Matcher& matcher) {
  while (true) {
    lane_ = &matcher.lane();
    lock_or_poll(lane_->mutex());
    if (lane_ == &matcher.lane()) return;
    lane_->mutex().unlock();
  }
}

Matcher::Matcher(std::shared_ptr<Constraint> constraint)
    : constraint_(std::move(constraint)), lane_(&constraint_->first()) {}

Matcher::Matcher(const Matcher& other)
    : constraint_(other.constraint_),
      lane_(&other.lane()),
      tokens_(other.tokens_),
      states_(other.states_),
      generation_(other.generation_),
      finished_(other.finished_),
      promise_(other.promise_),
      left_(other.left_),
      promised_(other.promised_) {}

void Matcher::move_to(Lane& lane) {
  generation_ = kStale;
  lane_.store(&lane, std::memory_order_release);
}

void Matcher::replay(Lane& lane) {
  generation_ = kStale;
  states_.clear();
  states_.push_back(lane.start());
  for (size_t i = 0; i < tokens_.size(); ++i) {
    if (i % 64 == 0) poll();
    const StateId at = states_.back();
    const bool read = i < tokens_.size() - finished_;
    const StateId next = read ? lane.advance(at, tokens_[i]) : at;
    if (next == kNoState) throw Error("a sequence could not be replayed");
    states_.push_back(next);
  }
  if (promised_ && !is_finished()) lane.budget().record(states_.back(), promise_);
  generation_ = lane.generation();
}

void Matcher::sync(Lane& lane) {
  lane.prepare();
  if (generation_ == lane.generation()) return;
  replay(lane);
  if (tokens_.empty() || !lane.over_limit()) return;
  // What other sequences have left behind may be what is too much.
  lane.rebuild();
  replay(lane);
  if (!lane.over_limit()) return;
  const size_t most = constraint_->max_memory();
  if (lane.bytes() > most) {
    throw LimitError("one sequence needs more than max_memory (" + std::to_string(most) + " bytes)",
                     "max_memory");
  }
  lane.set_max_memory(std::min(most, lane.bytes() * 2));   // a share that turned out too small
}

template <class Fn>
auto Matcher::work(Fn fn) {
  Lane& here = lane();
  try {
    sync(here);
    return fn(here);
  } catch (...) {
    here.discard_after_exception();
    throw;
  }
}

StateId Matcher::state() {
  return work([&](Lane&) { return states_.back(); });
}

bool Matcher::advance(int64_t token) {
  return work([&](Lane& lane) {
    bool finished = is_finished();
    const StateId next = lane.follow(states_.back(), token, finished);
    if (next == kNoState) return false;
    if (finished) ++finished_;
    else keep_promise(lane, static_cast<uint32_t>(token), next);
    tokens_.push_back(static_cast<uint32_t>(token));
    states_.push_back(next);
    return true;
  });
}

// What the mask knew of this token becomes a completion of this sequence, which no lane can lose.
void Matcher::keep_promise(Lane& lane, uint32_t token, StateId next) {
  if (!promised_) return;
  Budget& budget = lane.budget();
  if (!promise_.empty() && promise_[0] == token) {
    budget.record(next, std::span(promise_).subspan(1));
  }
  promised_ = left_ > 0 && budget.need_behind(states_.back(), token, next, left_ - 1) < left_;
  if (!promised_) return;
  --left_;
  promise_ = budget.way(next);
}

bool Matcher::rollback(size_t n) {
  if (n > tokens_.size()) return false;
  promised_ = promised_ && n == 0;
  tokens_.resize(tokens_.size() - n);
  if (states_.size() > tokens_.size() + 1) states_.resize(tokens_.size() + 1);
  finished_ -= std::min(n, finished_);
  return true;
}

void Matcher::reset() { rollback(tokens_.size()); }

size_t Matcher::validate(std::span<const int64_t> tokens) { return validate(tokens, kNoBudget); }

size_t Matcher::validate(std::span<const int64_t> tokens, uint32_t remaining) {
  return work([&](Lane& lane) {
    StateId at = states_.back();
    bool finished = is_finished();
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (i >= remaining) return i;
      const StateId before = at;
      at = lane.follow(before, tokens[i], finished);
      if (at == kNoState) return i;
      if (finished || remaining == kNoBudget) continue;
      const uint32_t left = remaining - static_cast<uint32_t>(i) - 1;
      if (lane.budget().need_behind(before, static_cast<uint32_t>(tokens[i]), at, left) > left) {
        return i;
      }
    }
    return tokens.size();
  });
}

bool Matcher::fill(uint32_t* row) {
  const Vocabulary& vocabulary = constraint_->vocabulary();
  if (is_finished()) {
    std::fill_n(row, vocabulary.words(), 0u);
    or_words(row, vocabulary.eos_words());
    return true;
  }
  return work([&](Lane& lane) { return fill_here(lane, row); });
}

bool Matcher::fill_here(Lane& lane, uint32_t* row) {
  if (lane.fill(states_.back(), row)) return true;
  or_words(row, lane.vocabulary().eos_words());
  return false;
}

bool Matcher::fill(uint32_t* row, uint32_t remaining) {
  if (remaining == kNoBudget || is_finished()) return fill(row);
  return work([&](Lane& lane) {
    const StateId at = states_.back();
    Budget& budget = lane.budget();
    promised_ = false;
    if (remaining > 1 && budget.bound(at) < remaining && lane.fill(at, row)) return true;
    if (remaining == 0 || budget.need_here(at) > remaining) {
      std::fill_n(row, lane.vocabulary().words(), 0u);
      or_words(row, lane.vocabulary().eos_words());
      return lane.accepts(at);
    }
    lane.fill(at, row);
    budget.keep(at, remaining - 1, row);
    promise_ = budget.way(at);
    left_ = remaining;
    promised_ = true;
    return true;
  });
}

bool Matcher::shortest_completion(std::vector<uint32_t>& tokens) {
  tokens.clear();
  return work([&](Lane& lane) {
    if (is_finished()) return true;
    lane.budget().need_here(states_.back());
    tokens = lane.budget().way(states_.back());
    return !tokens.empty() || lane.accepts(states_.back());
  });
}

uint32_t Matcher::tokens_needed() {
  std::vector<uint32_t> tokens;
  return shortest_completion(tokens) ? static_cast<uint32_t>(tokens.size()) : Budget::kNever;
}

uint32_t Matcher::most_needed() {
  return work([&](Lane& lane) { return is_finished() ? 0 : lane.budget().bound(states_.back()); });
}

bool Matcher::is_accepting() {
  return work([&](Lane& lane) { return is_finished() || lane.accepts(states_.back()); });
}

std::string Matcher::describe() {
  if (is_finished()) return "nothing: the sequence is finished";
  return work([&](Lane& lane) { return lane.machine().describe(lane.config(states_.back())); });
}

bool Matcher::complete(std::string& out, size_t limit) {
  return work([&](Lane& lane) {
    return is_finished() || lane.machine().complete(lane.config(states_.back()), out, limit);
  });
}

Matcher::Probe Matcher::probe(std::string_view text, size_t limit) {
  return work([&](Lane& lane) {
    Probe found;
    Machine& machine = lane.machine();
    Config config = lane.config(states_.back());
    for (const char c : text) {
      Config next = config;
      if (!machine.step(next, static_cast<uint8_t>(c))) break;
      config = next;
      ++found.read;
    }
    for (unsigned byte = 0; byte < 256; ++byte) {
      Config next = config;
      if (machine.step(next, uint8_t(byte))) add_byte(found.next, uint8_t(byte));
    }
    found.expected = machine.describe(config);
    found.accepts = machine.accepts(config);
    found.forced = forced_from(machine, config, limit);
    found.completes = machine.complete(config, found.completion, limit);
    return found;
  });
}

std::string Matcher::forced_bytes(size_t limit) {
  if (is_finished()) return {};
  return work(
      [&](Lane& lane) { return forced_from(lane.machine(), lane.config(states_.back()), limit); });
}

int64_t Matcher::only_token(uint32_t remaining) {
  std::vector<uint32_t> row(constraint_->vocabulary().words());
  if (is_finished() || !fill(row.data(), remaining)) return -1;
  int64_t found = -1;
  for (size_t i = 0; i < row.size(); ++i) {
    if (row[i] == 0) continue;
    if (found >= 0 || (row[i] & (row[i] - 1)) != 0) return -1;
    found = static_cast<int64_t>(i) * 32;
    for (uint32_t bits = row[i]; (bits & 1u) == 0; bits >>= 1) ++found;
  }
  return found;
}

size_t safe_cut(const Trie& trie, std::string_view text) {
  const size_t first = text.size() > trie.depth() ? text.size() - trie.depth() : 0;
  for (size_t at = first; at < text.size(); ++at) {
    const uint32_t n = trie.find(text.substr(at));
    if (n != 0 && trie.node(n).child_count != 0) return at;
  }
  return text.size();
}

}  // namespace constrain
