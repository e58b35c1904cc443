// Units of a grammar program: regions of its byte automata that have tables.
//
// The region of a state is what bytes alone reach from it, numbered in the order of a search, so
// that equal terminals of different grammars are the same region.  A state that reaches too much
// belongs to one region for its whole net instead.  Only wide states (many bytes possible) are worth
// a table; the others are walked.
#pragma once

#include <cstdint>
#include <vector>

#include "constrain/byte_regions.hpp"
#include "constrain/grammar_tables.hpp"

namespace constrain {

class GrammarUnits {
 public:
  // `tables` and `regions` must outlive it.  `foreign_first[f]`: bytes that foreign call f can begin
  // with.
  GrammarUnits(const GrammarTables& tables, ByteRegions& regions,
               const std::vector<ByteSet>& foreign_first);

  struct Unit {
    uint32_t region = GrammarTables::kNone;   // kNone: no table
    uint32_t state = 0;                       // of the region
  };
  // The unit that a state stands in; made on first use.
  const Unit& unit(uint32_t state);
  // The program's state that the region's state `number` stands for, in the unit of `state`.
  uint32_t state_behind(uint32_t state, uint32_t number) const;
  // Bytes that may follow a state in another way than by its own bytes, whatever the stacks.
  const ByteSet& exits(uint32_t state) const { return exits_[state]; }
  // Bytes that may follow the net of a state, whatever the stacks.
  const ByteSet& behind(uint32_t state) const { return follow_[net_[state]]; }

  size_t bytes() const;

 private:
  static constexpr uint32_t kUnknown = 0xFFFFFFFEu;

  void find_nets();
  void find_exits(const std::vector<ByteSet>& foreign_first);
  void make(uint32_t state);
  void make_net(uint32_t net);

  const GrammarTables& tables_;
  ByteRegions& regions_;
  std::vector<uint32_t> net_;          // per state: number of its net
  std::vector<std::vector<uint32_t>> net_states_;
  std::vector<Unit> net_units_;        // a region for all of a net, kUnknown until it is wanted
  std::vector<ByteSet> exits_;
  std::vector<ByteSet> follow_;        // by net
  std::vector<Unit> units_;
  std::vector<std::vector<uint32_t>> members_;   // per state with a region of its own
  std::vector<uint32_t> rank_;         // per state: its number among the net's states
};

}  // namespace constrain
