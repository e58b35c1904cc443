// How many tokens a text still needs, and masks that keep a text within a number of tokens.
//
// A *way* is a completion as tokens: for each state the next token of it, the state behind that,
// and how many tokens are left.  Ways are kept by state and only ever get shorter, so whoever
// follows one never gets stuck, whatever else is tried in between.
//
// A way is found from the machine's own completion, written with as few tokens as the vocabulary
// can (dynamic programming over the trie), and, where the vocabulary is small or cannot write that
// text at all, by a search over tokens.
//
// States are interned and machines stepped outside of trials here: equal states are met again and
// again, and what is found about them is kept.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "constrain/machine.hpp"
#include "constrain/states.hpp"
#include "constrain/trie.hpp"

namespace constrain {

// The fewest tokens that spell a text; false: the vocabulary cannot.
bool fewest_tokens(const Trie& trie, std::string_view text, std::vector<uint32_t>& out);

class Budget {
 public:
  static constexpr uint32_t kNever = 0xFFFFFFFFu;

  Budget(const Trie& trie, Machine& machine, StateTable& states)
      : trie_(trie), machine_(machine), states_(states) {}

  // Tokens up to a valid text, none for a valid text; kNever where no completion is known.
  uint32_t need(StateId state);
  // The tokens of that completion; empty where none is needed or known.
  std::vector<uint32_t> way(StateId state);
  // Clears the tokens of a row after which more than `left` tokens would be needed.
  void keep(StateId state, uint32_t left, uint32_t* row);
  size_t bytes() const { return ways_.capacity() * sizeof(Way); }

 private:
  struct Way {
    uint32_t need = kNever;
    uint32_t token = 0;
    StateId next = kNoState;
    bool known = false;
    bool exact = false;   // nothing shorter exists
  };
  Way& at(StateId state);
  StateId behind(StateId state, uint32_t token);
  void find(StateId state);
  // Keeps this completion for the state and for those on its way.
  void record(StateId state, std::span<const uint32_t> tokens);
  void search(StateId state, size_t steps);
  // Calls visit(node, config) for each trie node with tokens that the machine can read from here.
  template <class Visit>
  void walk(const Config& from, Visit visit);

  const Trie& trie_;
  Machine& machine_;
  StateTable& states_;
  std::vector<Way> ways_;   // by state
  size_t walked_ = 0;       // steps of walk
};

}  // namespace constrain
