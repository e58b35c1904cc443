// Fills the row of tokens that may come next after a config of a machine.
//
// A token is allowed if and only if the machine steps through all its bytes.  Instead of stepping
// through all tokens:
//
// * from a config inside a lexical unit, the row of the unit's table is copied, and only the
//   remainders of tokens that end the unit are walked with the machine, from behind the unit;
// * a config that is exceptional is walked in step with the trie for as long as it stays
//   exceptional; what that finds overrides the table;
// * from a config outside of units the trie is walked with the machine; where the walk enters a
//   unit above many tokens, a table for that trie node takes over;
// * in a gap of JSON text, what follows blanks is looked at once (gap_tables.hpp);
// * a config that is a union is split into parts, each of which may have a table, and the rows are
//   united;
// * the part of a config that is framed has a table for all stacks that it may return to;
// * where the machine is unsure, because the text of the unit that a token ends has come to matter
//   within the same token, the token is stepped through from its first byte.
//
// At each node only those children are looked at that the machine calls live.  The walks step
// scratch copies of the config in a trial of the machine and keep none of them.  They are iterative;
// their stacks are as deep as the longest token, and allocated ahead.
#pragma once

#include <cstdint>
#include <vector>

#include "constrain/frame_tables.hpp"
#include "constrain/gap_tables.hpp"
#include "constrain/lexical_tables.hpp"
#include "constrain/machine.hpp"
#include "constrain/trie.hpp"

namespace constrain {

class MaskFiller {
 public:
  MaskFiller(const Trie& trie, LexicalTables& tables);

  // Writes the whole row (tables.words() words): text tokens only, everything else zero.  Returns
  // the table that the row was copied from, or null when it began empty.
  const LexicalTable* fill(Machine& machine, const Config& config, uint32_t* row);

  // Steps of machines since construction, and tokens tried one by one, for benchmarks.
  uint64_t steps() const { return steps_; }
  uint64_t tried() const { return tried_; }
  size_t bytes() const { return gaps_.bytes(); }

 private:
  // How the bits below a trie node stand before the walk gets there.
  enum class Below : uint8_t {
    kClear,    // all zero: the walk sets what is allowed
    kTable,    // as the table says: the walk corrects where the config is exceptional
  };
  struct Frame {
    uint32_t next, end;
    Below below;
    bool filtered;   // only children in `live` matter
    ByteSet live;
  };

  void open(Machine& machine, const Config& config, const TrieNode& node, Below below,
            Frame& frame);
  // `shared`: the row has bits of others, so none may be taken out again; what would do that is left
  // for later.
  void walk(Machine& machine, const Config& config, uint32_t node, Below below, bool shared,
            uint32_t* row);
  // Where a table says what is below a node that the machine stands at: uses it, and returns false
  // unless the walk must go on below to correct it, or there is no table.
  bool enter(Machine& machine, const Config& config, uint32_t node, bool shared, Below& below,
             uint32_t* row);
  // row |= tokens that begin with blanks, from a config in this gap.
  void walk_gap(Machine& machine, const Config& config, uint32_t gap, const Frame& top, bool shared,
                uint32_t* row);
  // row |= tokens below a node; at it too where the config or all its parts have tables.  Returns a
  // table with a row of its own that was used, or null.
  const LexicalTable* add(Machine& machine, const Config& config, uint32_t node, uint32_t* row);
  const LexicalTable* add_unit(Machine& machine, const Config& config, const LexicalView& view,
                               uint32_t node, uint32_t* row);
  // The table of the frame that a framed config stands in; made when missing (mask_frames.cpp).
  const FrameTable& frame_table(Machine& machine, const Config& config, const LexicalView& view,
                                uint32_t node);
  std::shared_ptr<const RemainderTrie> unite_exits(const ByteSet& first,
                                                   const std::vector<uint32_t>& row) const;
  // Tokens that end the unit, for a table whose inside row is in `row` already.
  void end_unit(Machine& machine, const Config& config, const LexicalTable& table, bool shared,
                uint32_t* row);
  void leap(Machine& machine, const Config& config, const LexicalTable& table);
  void walk_remainders(Machine& machine, const Config& config, const Remainders& remainders,
                       uint32_t* row);
  // Tokens at and below a node of the remainders, each stepped through from the start.
  void try_tokens(Machine& machine, const Remainders& remainders, uint32_t node, uint32_t* row);

  const Trie& trie_;
  LexicalTables& tables_;
  GapTables gaps_;
  Config start_;   // the config that the mask is for
  std::vector<Frame> frames_;
  std::vector<Config> configs_;
  std::vector<Frame> remainder_frames_;
  std::vector<Config> remainder_configs_;
  std::vector<uint32_t> pending_;
  // What is to be added below a node, behind the walk that found it.
  struct Later {
    Config config;
    uint32_t node;
  };
  std::vector<Later> later_;
  std::vector<Config> parts_;
  // While the table of a frame is made: where the frame can be left, by the node of the vocabulary's
  // trie or of a trie of remainders.
  struct FrameExit {
    std::shared_ptr<const RemainderTrie> trie;
    uint32_t node;
  };
  bool in_frame_ = false;
  bool frame_usable_ = true;
  std::vector<FrameExit> exits_;
  std::vector<uint32_t> scratch_;
  uint64_t steps_ = 0;
  uint64_t tried_ = 0;
};

}  // namespace constrain
