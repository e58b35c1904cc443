// A constraint at a vocabulary, and the matchers that follow one sequence each.
//
// What a constraint computes lives in lanes: a machine with its states and masks on one shard of the
// vocabulary.  The first lane is made with the constraint, others when a batch is filled by several
// threads.  A lane changes under the mutex of its shard only: callers hold `matcher.lane().mutex()`
// around every call of a matcher but its construction.  States are values: a matcher is a list of
// tokens and of state ids, so rollback drops the tail and a fork copies the list.
//
// Memory is bounded.  When what a lane holds passes its bound, its machine, states and masks are
// dropped and `generation` changes; a matcher of an older generation replays its tokens before its
// next use, as does one that moved to another lane.  A bound that is too small for one sequence is a
// LimitError.  Work that was interrupted leaves nothing behind: the lane is dropped too.
#pragma once

#include <array>
#include <atomic>
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

class Lane {
 public:
  // Makes the machine once, so that whatever is wrong with the program is thrown here.  The mutex of
  // the shard is held.
  Lane(Vocabulary& vocabulary, Shard& shard, const MachineFactory& factory, size_t max_memory);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  std::timed_mutex& mutex() { return shard_.mutex(); }
  Vocabulary& vocabulary() { return vocabulary_; }

  // Drops what is over its bound.  The states of older generations are invalid after it.
  void prepare();
  // In a handler of exceptions: what was being done is half done, so the machine is made anew before
  // its next use, and the pool too unless the exception is about the program.
  void discard_after_exception();
  void rebuild();
  uint32_t generation() const { return generation_; }
  bool over_limit() const { return bytes() > max_memory_; }
  size_t max_memory() const { return max_memory_; }
  void set_max_memory(size_t limit) { max_memory_ = limit; }
  size_t bytes() const;

  Machine& machine() { return *machine_; }
  StateId start() const { return start_; }
  const Config& config(StateId state) const { return states_->config(state); }
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
  void discard_machine();

  Vocabulary& vocabulary_;
  Shard& shard_;
  const MachineFactory& factory_;
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

class Constraint {
 public:
  static constexpr size_t kMostLanes = Vocabulary::kMostShards;

  // Makes the first lane; takes the mutex of its shard.
  Constraint(std::shared_ptr<Vocabulary> vocabulary, MachineFactory factory, size_t max_memory);
  Constraint(const Constraint&) = delete;
  Constraint& operator=(const Constraint&) = delete;

  Vocabulary& vocabulary() { return *vocabulary_; }
  size_t max_memory() const { return max_memory_; }
  Lane& first() { return *lanes_[0]; }
  // Null: it was not made.
  Lane* existing(size_t index) { return made_[index].load(std::memory_order_acquire); }
  // Makes the lane when missing; no mutex of a shard may be held.  Null where it does not fit in half
  // of the bound on memory, which all lanes share.
  Lane* lane(size_t index);
  // Takes the mutexes of the shards, one after the other.
  size_t bytes();

 private:
  std::shared_ptr<Vocabulary> vocabulary_;
  MachineFactory factory_;
  size_t max_memory_;
  std::mutex making_;
  std::array<bool, kMostLanes> refused_{};
  std::array<std::unique_ptr<Lane>, kMostLanes> lanes_;
  std::array<std::atomic<Lane*>, kMostLanes> made_{};
};

// One sequence.  Behind an end-of-sequence token the sequence is finished: then exactly the
// end-of-sequence tokens are allowed, and each of them counts for rollback.
class Matcher {
 public:
  static constexpr uint32_t kNoBudget = 0xFFFFFFFFu;

  explicit Matcher(std::shared_ptr<Constraint> constraint);
  // The same sequence, in the same lane.
  Matcher(const Matcher& other);
  Matcher& operator=(const Matcher&) = delete;

  Constraint& constraint() const { return *constraint_; }
  // Where the sequence is followed now.  Another thread may move it elsewhere unless this lane's
  // mutex is held, so look again once it is: MatcherLock.
  Lane& lane() const { return *lane_.load(std::memory_order_acquire); }
  void move_to(Lane& lane);

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
  // With more than that behind the next token no mask is checked; Budget::kNever: none is known.
  uint32_t most_needed();
  bool is_accepting();
  bool is_finished() const { return finished_ > 0; }
  std::span<const uint32_t> tokens() const { return tokens_; }
  StateId state();

  // What may come next, for messages.
  std::string describe();
  // Reads bytes from here as far as they can be read, whatever tokens there are, and says what may
  // come next there; the state is unchanged.  Special tokens are read by their spelling.
  struct Probe {
    size_t read = 0;
    std::string expected;
    ByteSet next{};            // exactly the bytes that may follow
    bool accepts = false;
    std::string forced;        // bytes that have no alternative there
    bool completes = false;    // `completion` is a short text that completes it
    std::string completion;
  };
  Probe probe(std::string_view text, size_t limit);
  // A short text that completes this one; false: none was found.
  bool complete(std::string& out, size_t limit);
  // Bytes that have no alternative from here, at most `limit`.
  std::string forced_bytes(size_t limit);
  // The only allowed token, or -1; without a budget where `remaining` is kNoBudget.
  int64_t only_token(uint32_t remaining = kNoBudget);

 private:
  // Makes the state ids valid; throws LimitError where the bound does not suffice.
  void sync(Lane& lane);
  void replay(Lane& lane);
  // fn(lane) with valid state ids; an exception on the way discards what the lane was doing.
  template <class Fn>
  auto work(Fn fn);

  static constexpr uint32_t kStale = 0;   // no generation of a lane

  bool fill_here(Lane& lane, uint32_t* row);
  void keep_promise(Lane& lane, uint32_t token, StateId next);

  std::shared_ptr<Constraint> constraint_;
  std::atomic<Lane*> lane_;
  std::vector<uint32_t> tokens_;
  std::vector<StateId> states_;      // one more than tokens_
  uint32_t generation_ = kStale;
  size_t finished_ = 0;              // end-of-sequence tokens at the end of tokens_
  // Under a budget that is near: a completion within what is left of it.
  std::vector<uint32_t> promise_;
  uint32_t left_ = 0;                // tokens, as the last mask was told and those since then
  bool promised_ = false;
};

// Holds the mutex of the lane that a matcher is in.
class MatcherLock {
 public:
  explicit MatcherLock(const Matcher& matcher);
  ~MatcherLock() { lane_->mutex().unlock(); }
  MatcherLock(const MatcherLock&) = delete;
  MatcherLock& operator=(const MatcherLock&) = delete;

 private:
  Lane* lane_;
};

// Where a text must be cut so that none of its tail could have merged into a longer token: the
// first position whose suffix is a proper prefix of a token.
size_t safe_cut(const Trie& trie, std::string_view text);

}  // namespace constrain
