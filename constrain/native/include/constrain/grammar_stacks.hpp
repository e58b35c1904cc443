// Sets of stacks, interned: equal sets have equal ids, as long as the budget of unions lasts.
//
// A set of stacks is a list of entries (return state, set of the stacks below), in order, with one
// entry per return state; the stack without any frame is the entry (kBottom, kBottom).  Uniting two
// sets unites what is below equal return states, down to the bottom.  That recursion (iterative
// here) is exponential in the worst case, so it has a budget per step; over it a set may have
// several entries with one return state, which denotes the same stacks but is not canonical: ids
// recur less often, and nothing else changes.
//
// The arena only grows, except that everything made since `begin_trial` is forgotten at
// `end_trial`.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace constrain {

class GrammarStacks {
 public:
  using StackId = uint32_t;
  static constexpr uint32_t kBottom = 0xFFFFFFFFu;
  static constexpr StackId kOnlyBottom = 0;

  struct Entry {
    uint32_t back;     // return state
    StackId below;
    bool operator==(const Entry&) const = default;
    auto operator<=>(const Entry&) const = default;
  };

  GrammarStacks();

  std::span<const Entry> entries(StackId id) const {
    return {entries_.data() + nodes_[id].begin, nodes_[id].count};
  }
  StackId push(uint32_t back, StackId below) {
    const Entry entry{back, below};
    return intern({&entry, 1});
  }
  // The union of one set or more.
  StackId unite(std::span<const StackId> sets);
  // How many entries the unions below topmost frames may make until the next call.
  void set_budget(uint32_t entries) { budget_ = entries; }
  uint32_t budget() const { return budget_; }

  void begin_trial();
  void end_trial();
  size_t bytes() const;

 private:
  struct Node {
    uint32_t begin, count, hash;
  };
  struct Frame {
    uint32_t back;          // the result goes below this return state
    StackId listed;         // what is united, as a set with several entries per return state
    uint32_t at, end;       // entries of merged_ that are left
    uint32_t out;           // where the result begins in out_
    uint32_t merged;        // where the entries began
  };

  StackId intern(std::span<const Entry> entries);
  StackId lookup(std::span<const Entry> entries, uint32_t hash);
  StackId open(size_t from, uint32_t back);
  void remember(StackId listed, StackId united);
  void rehash(size_t slots);
  std::vector<Entry> entries_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> slots_;           // id + 1
  std::vector<StackId> united_;           // per set: its canonical form, 0 if that is not known
  std::vector<Frame> frames_;
  std::vector<StackId> ids_;              // sets to be united
  std::vector<Entry> merged_, out_;
  uint32_t budget_ = 0;
  bool trial_ = false;
  bool complete_ = true;                  // no union was cut short by the budget
  std::vector<StackId> trial_united_;     // older sets whose form was found in the trial
  size_t trial_nodes_ = 0, trial_entries_ = 0, trial_slots_ = 0;
};

}  // namespace constrain
