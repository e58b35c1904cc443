// A constraint at a vocabulary, and the matchers that follow one sequence each.
//
// Everything here changes under the mutex of the vocabulary's shard: callers hold
// `constraint.mutex()` around every call but construction.  States are values: a matcher is a list
// of tokens and of state ids, so rollback drops the tail and a fork copies the list.
//
// Memory is bounded.  When what a constraint holds passes its bound, its machine, states and masks
// are dropped and `generation` changes; a matcher of an older generation replays its tokens before
// its next use.  A bound that is too small for one sequence is a LimitError.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "constrain/budget.hpp"
#include "constrain/machine.hpp"
#include "constrain/states.hpp"
#include "constrain/vocabulary.hpp"

namespace constrain {

using MachineFactory = std::function<std::unique_ptr<Machine>(LexicalStepper&)>;

class Constraint {
 public:
  // Makes the machine once, so that whatever is wrong with the program is thrown here.
  Constraint(std::shared_ptr<Vocabulary> vocabulary, MachineFactory factory, size_t max_memory);
  ~Constraint();
  Constraint(const Constraint&) = delete;
  Constraint& operator=(const Constraint&) = delete;

  std::mutex& mutex() { return vocabulary_->shard().mutex(); }
  Vocabulary& vocabulary() { return *vocabulary_; }

  // Drops what is over its bound.  The states of older generations are invalid after it.
  void prepare();
  uint32_t generation() const { return generation_; }
  bool over_limit() const { return bytes() > max_memory_; }
  size_t max_memory() const { return max_memory_; }
  size_t bytes() const {
    return machine_->bytes() + states_->bytes() + masks_->bytes() + budget_->bytes();
  }

  Machine& machine() { return *machine_; }
  StateId start() const { return start_; }
  const Config& config(StateId state) const { return states_->config(state); }
  StateId intern(const Config& config) { return states_->intern(config); }
  bool accepts(StateId state) { return machine_->accepts(config(state)); }
  // The state behind a token that the machine reads, or kNoState.
  StateId advance(StateId state, uint32_t token);
  // The state behind a token of a sequence, or kNoState.  An end-of-sequence token may be one that
  // the machine reads; else it ends the sequence where that is a valid text: `finished` is set.
  StateId follow(StateId state, int64_t token, bool& finished);
  // The mask of a state; false: no token may come next.
  bool fill(StateId state, uint32_t* row);
  Budget& budget() { return *budget_; }

 private:
  void rebuild();

  std::shared_ptr<Vocabulary> vocabulary_;
  MachineFactory factory_;
  size_t max_memory_;
  uint32_t generation_ = 0;
  uint32_t shard_generation_ = 0;
  uint32_t prepared_ = 0;   // calls of prepare
  std::unique_ptr<Machine> machine_;
  std::unique_ptr<StateTable> states_;
  std::unique_ptr<MaskCache> masks_;
  std::unique_ptr<Budget> budget_;
  StateId start_ = kNoState;
};

// One sequence.  Behind an end-of-sequence token the sequence is finished: then exactly the
// end-of-sequence tokens are allowed, and each of them counts for rollback.
class Matcher {
 public:
  static constexpr uint32_t kNoBudget = 0xFFFFFFFFu;

  explicit Matcher(std::shared_ptr<Constraint> constraint);

  Constraint& constraint() const { return *constraint_; }

  // False: the token is not allowed here, and nothing changed.
  bool advance(int64_t token);
  // Takes the last n tokens back; false: there are fewer.
  bool rollback(size_t n);
  void reset();
  // How many of these tokens could be advanced over, one after the other.
  size_t validate(std::span<const int64_t> tokens);
  // The same, as far as the text can be finished within `remaining` tokens, these included.
  size_t validate(std::span<const int64_t> tokens, uint32_t remaining);
  // Writes vocabulary().words() words; false: no token may come next, and the row has the
  // end-of-sequence tokens instead, so that nobody samples from nothing.
  bool fill(uint32_t* row);
  // The same, with the tokens after which the text can still be finished within `remaining`
  // tokens, the next one included; false also where the text cannot be: see tokens_needed.
  bool fill(uint32_t* row, uint32_t remaining);
  // The tokens of the shortest completion that is known: none for a valid text.  False: no
  // completion is known.
  bool shortest_completion(std::vector<uint32_t>& tokens);
  // How many they are; Budget::kNever: no completion is known.
  uint32_t tokens_needed();
  bool is_accepting();
  bool is_finished() const { return finished_ > 0; }
  std::span<const uint32_t> tokens() const { return tokens_; }
  StateId state();

  // What may come next, for messages.
  std::string describe();
  // A short text that completes this one; false: none was found.
  bool complete(std::string& out, size_t limit);
  // Bytes that have no alternative from here, at most `limit`.
  std::string forced_bytes(size_t limit);
  // The only allowed token, or -1; without a budget where `remaining` is kNoBudget.
  int64_t only_token(uint32_t remaining = kNoBudget);

 private:
  // Makes the state ids valid; throws LimitError where the bound does not suffice.
  void sync();

  std::shared_ptr<Constraint> constraint_;
  std::vector<uint32_t> tokens_;
  std::vector<StateId> states_;      // one more than tokens_
  uint32_t generation_ = 0;
  size_t finished_ = 0;              // end-of-sequence tokens at the end of tokens_
};

// Where a text must be cut so that none of its tail could have merged into a longer token: the
// first position whose suffix is a proper prefix of a token.
size_t safe_cut(const Trie& trie, std::string_view text);

}  // namespace constrain
