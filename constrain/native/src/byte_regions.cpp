#include "constrain/byte_regions.hpp"

#include <algorithm>
#include <bitset>

namespace constrain {

ByteRegion::ByteRegion(std::vector<Range> ranges, std::vector<ByteSet> exits)
    : ranges_(std::move(ranges)), exits_(std::move(exits)) {
  std::bitset<257> cuts;
  for (const Range& range : ranges_) {
    cuts.set(range.first);
    cuts.set(range.last + 1u);
  }
  uint32_t current = 0;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    if (byte > 0 && cuts[byte]) ++current;
    class_of_[byte] = static_cast<uint8_t>(current);
  }
  classes_ = current + 1;
  next_.assign(exits_.size() * classes_, kDead);
  for (const Range& range : ranges_) {
    for (uint32_t c = class_of_[range.first]; c <= class_of_[range.last]; ++c) {
      next_[size_t{range.state} * classes_ + c] = range.target;
    }
  }
  for (const ByteSet& set : exits_) leaves_.push_back(set != ByteSet{});
}

size_t ByteRegion::bytes() const {
  return sizeof(*this) + ranges_.capacity() * sizeof(Range) + exits_.capacity() * sizeof(ByteSet) +
         leaves_.capacity() + next_.capacity() * sizeof(uint32_t);
}

uint32_t ByteRegions::intern(std::vector<ByteRegion::Range> ranges, std::vector<ByteSet> exits) {
  uint64_t hash = exits.size();
  const auto add = [&](uint64_t word) { hash = mix64(hash ^ word) + 0x9E3779B97F4A7C15ull; };
  for (const auto& range : ranges) {
    add(pack(range.state, range.target));
    add(uint64_t{range.first} << 8 | range.last);
  }
  for (const ByteSet& set : exits) {
    for (const uint64_t word : set) add(word);
  }
  const uint32_t found = set_.find(hash, [&](uint32_t id) {
    return regions_[id].ranges_ == ranges && regions_[id].exits_ == exits;
  });
  if (found != IdSet::kMissing) return found;
  const auto id = static_cast<uint32_t>(regions_.size());
  regions_.emplace_back(std::move(ranges), std::move(exits));
  bytes_ += regions_.back().bytes();
  set_.add(hash, id);
  return id;
}

}  // namespace constrain
