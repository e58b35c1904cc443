#include "constrain/session.hpp"

#include <algorithm>

#include "constrain/errors.hpp"

namespace constrain {
namespace {

constexpr uint32_t kBetweenChecks = 8;

}  // namespace

Constraint::Constraint(std::shared_ptr<Vocabulary> vocabulary, MachineFactory factory,
                       size_t max_memory)
    : vocabulary_(std::move(vocabulary)), factory_(std::move(factory)), max_memory_(max_memory) {
  const std::lock_guard lock(mutex());
  vocabulary_->shard().trim();
  rebuild();
  if (over_limit()) {
    machine_.reset();
    throw LimitError("the constraint alone needs more than max_memory (" +
                         std::to_string(max_memory_) + " bytes)",
                     "max_memory");
  }
}

Constraint::~Constraint() {
  // Not while a batch fills masks of this shard.  The pool may be gone already, so destructors of
  // machines leave it alone.
  const std::lock_guard lock(mutex());
  machine_.reset();
}

void Constraint::rebuild() {
  Shard& shard = vocabulary_->shard();
  machine_.reset();
  states_ = std::make_unique<StateTable>();
  masks_ = std::make_unique<MaskCache>(vocabulary_->words(), max_memory_ / 4);
  budget_.reset();
  machine_ = factory_(shard.pool());
  budget_ = std::make_unique<Budget>(*vocabulary_, *machine_, *states_);
  start_ = states_->intern(machine_->start());
  shard_generation_ = shard.generation();
  ++generation_;
}

void Constraint::prepare() {
  Shard& shard = vocabulary_->shard();
  shard.trim();
  // No machine: the last rebuild was interrupted by an exception.
  // Adding up what is held costs as much as a mask: not every time.
  const bool over = ++prepared_ % kBetweenChecks == 0 && machine_ && over_limit();
  if (!machine_ || shard_generation_ != shard.generation() || over) rebuild();
}

StateId Constraint::advance(StateId state, uint32_t token) {
  const std::string_view text = vocabulary_->spelling(token);
  if (text.empty()) return kNoState;
  Config config = states_->config(state);
  for (const char c : text) {
    if (!machine_->step(config, static_cast<uint8_t>(c))) return kNoState;
  }
  return states_->intern(config);
}

StateId Constraint::follow(StateId state, int64_t token, bool& finished) {
  const bool eos = vocabulary_->is_eos(token);
  if (finished) return eos ? state : kNoState;
  if (token < 0 || token >= vocabulary_->size()) return kNoState;
  const StateId next = advance(state, static_cast<uint32_t>(token));
  if (next != kNoState || !eos || !accepts(state)) return next;
  finished = true;
  return state;
}

bool Constraint::fill(StateId state, uint32_t* row) {
  Shard& shard = vocabulary_->shard();
  LexicalTables& tables = shard.tables();
  const size_t words = vocabulary_->words();
  if (!masks_->load(state, tables.generation(), row)) {
    const LexicalTable* base = shard.filler().fill(*machine_, states_->config(state), row);
    if (accepts(state)) or_words(row, vocabulary_->eos_words());
    masks_->store(state, base, row);
  }
  return any_bit(row, words);
}

Matcher::Matcher(std::shared_ptr<Constraint> constraint) : constraint_(std::move(constraint)) {
  states_.push_back(constraint_->start());
  generation_ = constraint_->generation();
}

void Matcher::sync() {
  constraint_->prepare();
  if (generation_ == constraint_->generation()) return;
  states_.clear();
  states_.push_back(constraint_->start());
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const StateId at = states_.back();
    const bool read = i < tokens_.size() - finished_;
    const StateId next = read ? constraint_->advance(at, tokens_[i]) : at;
    if (next == kNoState) throw Error("a sequence could not be replayed");
    states_.push_back(next);
  }
  generation_ = constraint_->generation();
  if (constraint_->over_limit()) {
    throw LimitError("one sequence needs more than max_memory (" +
                         std::to_string(constraint_->max_memory()) + " bytes)",
                     "max_memory");
  }
}

StateId Matcher::state() {
  sync();
  return states_.back();
}

bool Matcher::advance(int64_t token) {
  sync();
  bool finished = is_finished();
  const StateId next = constraint_->follow(states_.back(), token, finished);
  if (next == kNoState) return false;
  tokens_.push_back(static_cast<uint32_t>(token));
  states_.push_back(next);
  if (finished) ++finished_;
  return true;
}

bool Matcher::rollback(size_t n) {
  if (n > tokens_.size()) return false;
  tokens_.resize(tokens_.size() - n);
  states_.resize(tokens_.size() + 1);
  finished_ -= std::min(n, finished_);
  return true;
}

void Matcher::reset() { rollback(tokens_.size()); }

size_t Matcher::validate(std::span<const int64_t> tokens) { return validate(tokens, kNoBudget); }

size_t Matcher::validate(std::span<const int64_t> tokens, uint32_t remaining) {
  sync();
  StateId at = states_.back();
  bool finished = is_finished();
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i >= remaining) return i;
    at = constraint_->follow(at, tokens[i], finished);
    if (at == kNoState) return i;
    if (finished) continue;
    if (remaining != kNoBudget && constraint_->budget().need(at) > remaining - i - 1) return i;
  }
  return tokens.size();
}

bool Matcher::fill(uint32_t* row) {
  Vocabulary& vocabulary = constraint_->vocabulary();
  if (is_finished()) {
    std::fill_n(row, vocabulary.words(), 0u);
    or_words(row, vocabulary.eos_words());
    return true;
  }
  sync();
  if (constraint_->fill(states_.back(), row)) return true;
  or_words(row, vocabulary.eos_words());
  return false;
}

bool Matcher::fill(uint32_t* row, uint32_t remaining) {
  if (remaining == kNoBudget || is_finished()) return fill(row);
  Vocabulary& vocabulary = constraint_->vocabulary();
  sync();
  const StateId at = states_.back();
  Budget& budget = constraint_->budget();
  if (remaining > 1 && budget.far(at, remaining - 1) && constraint_->fill(at, row)) return true;
  if (remaining == 0 || budget.need_here(at) > remaining) {
    std::fill_n(row, vocabulary.words(), 0u);
    or_words(row, vocabulary.eos_words());
    return constraint_->accepts(at);
  }
  constraint_->fill(at, row);
  budget.keep(at, remaining - 1, row);
  return true;
}

bool Matcher::shortest_completion(std::vector<uint32_t>& tokens) {
  tokens.clear();
  sync();
  if (is_finished()) return true;
  tokens = constraint_->budget().way(states_.back());
  return !tokens.empty() || constraint_->accepts(states_.back());
}

uint32_t Matcher::tokens_needed() {
  std::vector<uint32_t> tokens;
  return shortest_completion(tokens) ? static_cast<uint32_t>(tokens.size()) : Budget::kNever;
}

bool Matcher::is_accepting() {
  sync();
  return is_finished() || constraint_->accepts(states_.back());
}

std::string Matcher::describe() {
  if (is_finished()) return "nothing: the sequence is finished";
  sync();
  return constraint_->machine().describe(constraint_->config(states_.back()));
}

bool Matcher::complete(std::string& out, size_t limit) {
  sync();
  if (is_finished()) return true;
  return constraint_->machine().complete(constraint_->config(states_.back()), out, limit);
}

std::string Matcher::forced_bytes(size_t limit) {
  std::string text;
  if (is_finished()) return text;
  sync();
  Machine& machine = constraint_->machine();
  Config config = constraint_->config(states_.back());
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
