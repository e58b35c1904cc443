// Walks of tries with a state beside the path: depth first, on a stack of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "constrain/byte_set.hpp"
#include "constrain/poll.hpp"
#include "constrain/trie.hpp"

namespace constrain {

enum class WalkStep : uint8_t { kInto, kPast, kStop };

// Visits what lies below `top`, where `from` is the state.  `nodes(n)` is a node; `live(state, set)`
// may tell the bytes that matter behind a state (false: nothing is known), and is asked only where
// many children could be passed by; `visit(n, state)` steps the state over the node's byte.
template <class State, class Nodes, class Live, class Visit>
void walk_below(Nodes nodes, uint32_t top, const State& from, Live live, Visit visit) {
  constexpr uint32_t kFewChildren = 3;
  struct Frame {
    uint32_t next, end;
    bool filtered = false;
    ByteSet live;
    State state;
  };
  std::vector<Frame> frames;
  const auto open = [&](uint32_t n, const State& state) {
    const TrieNode& node = nodes(n);
    Frame& frame = frames.emplace_back();
    frame.next = node.first_child;
    frame.end = node.first_child + node.child_count;
    frame.state = state;
    if (node.child_count > kFewChildren) frame.filtered = live(state, frame.live);
  };
  open(top, from);
  uint64_t steps = 0;
  while (!frames.empty()) {
    Frame& frame = frames.back();
    if (frame.next == frame.end) {
      frames.pop_back();
      continue;
    }
    const uint32_t n = frame.next++;
    if (frame.filtered && !has_byte(frame.live, nodes(n).byte)) continue;
    poll_sometimes(steps);
    State state = frame.state;
    const WalkStep step = visit(n, state);
    if (step == WalkStep::kStop) return;
    if (step == WalkStep::kInto && nodes(n).child_count != 0) open(n, state);
  }
}

}  // namespace constrain
