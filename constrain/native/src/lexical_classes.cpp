// Which code points a language tells apart.
#include <algorithm>
#include <map>

#include "constrain/lexical_pool.hpp"

namespace constrain {

namespace {
constexpr uint32_t kUnknown = 0xFFFFFFFFu;
constexpr uint32_t kMaxCodePoint = 0x10FFFF;
// States of a regex looked at to find out which of its classes still matter.
constexpr size_t kStatesToMerge = 64;
}  // namespace

uint32_t LexicalPool::dfas_of(LexId id) {
  if (nodes_[id].dfas != kUnknown) return nodes_[id].dfas;
  std::vector<uint32_t> all;
  const Node n = nodes_[id];
  if (n.op == Op::kRegex) {
    all.push_back(n.a);
  } else if (n.op == Op::kLagging) {
    // The characters of the stop are told apart from all others.
    all = {nodes_[n.a].a, nodes_[stop_at(n.b).anything].a};
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
  } else if (n.op == Op::kNot) {
    all = lists_.copy(dfas_of(n.a));
  } else if (n.op == Op::kAnd || n.op == Op::kOr || n.op == Op::kOne) {
    for (const LexId p : lists_.copy(n.a)) {
      const auto inner = lists_.copy(dfas_of(p));
      all.insert(all.end(), inner.begin(), inner.end());
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
  }
  const uint32_t list = lists_.intern(all);
  nodes_[id].dfas = list;
  return list;
}

uint32_t LexicalPool::partition_number(uint32_t dfas) {
  const uint32_t known = partitions_.find(dfas);
  if (known != FlatMap::kMissing) return known;
  std::vector<uint32_t> starts;
  std::vector<std::vector<uint32_t>> signatures;
  const std::vector<uint32_t> ids = lists_.copy(dfas);
  interval_starts(ids, starts);
  for (const uint32_t s : starts) {
    std::vector<uint32_t>& signature = signatures.emplace_back();
    for (const uint32_t d : ids) signature.push_back(dfas_[d]->class_of(s));
  }
  const uint32_t number = intern_partition(std::move(starts), std::move(signatures));
  partitions_.set(dfas, number);
  return number;
}

// Where intervals of these regexes begin; surrogates have an interval of their own.
void LexicalPool::interval_starts(std::span<const uint32_t> dfas, std::vector<uint32_t>& out) const {
  out = {0, 0xD800, 0xE000};
  for (const uint32_t d : dfas) {
    const auto starts = dfas_[d]->class_starts();
    out.insert(out.end(), starts.begin(), starts.end());
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  std::erase_if(out, [](uint32_t s) { return s > kMaxCodePoint || (s > 0xD800 && s < 0xE000); });
}

uint32_t LexicalPool::intern_partition(std::vector<uint32_t> starts,
                                       std::vector<std::vector<uint32_t>> signatures) {
  CharClasses p;
  std::map<std::vector<uint32_t>, uint32_t> seen;
  for (size_t i = 0; i < starts.size(); ++i) {
    const bool surrogate = starts[i] == 0xD800;
    signatures[i].push_back(surrogate);
    const auto [it, fresh] =
        seen.try_emplace(std::move(signatures[i]), uint32_t(p.representatives.size()));
    if (fresh) p.representatives.push_back(surrogate ? CharClasses::kNoCodePoint : starts[i]);
    if (!p.classes.empty() && p.classes.back() == it->second) continue;
    p.starts.push_back(starts[i]);
    p.classes.push_back(it->second);
  }
  uint64_t hash = hash_words(p.starts.data(), p.starts.size());
  hash = hash_words(p.classes.data(), p.classes.size(), hash);
  std::vector<uint32_t>& bucket = partition_index_[hash];
  for (const uint32_t i : bucket) {
    if (partition_list_[i].starts == p.starts && partition_list_[i].classes == p.classes) return i;
  }
  const uint32_t number = uint32_t(partition_list_.size());
  bucket.push_back(number);
  held_bytes_ += (p.starts.size() + p.classes.size() + p.representatives.size()) * sizeof(uint32_t);
  partition_list_.push_back(std::move(p));
  return number;
}

uint32_t LexicalPool::merged_classes(uint32_t dfa, uint32_t state) {
  const uint64_t key = pack(dfa, state);
  const uint32_t known = merged_index_.find(key);
  if (known != FlatMap::kMissing) return known;
  RegexDfa& d = growing(dfa);
  // Classes that lead to the same states from every state that can be reached are one.
  std::vector<uint32_t> group(d.num_classes(), 0), states{state};
  size_t groups = 1;
  bool whole = true;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> split;   // by group and target
  for (size_t i = 0; i < states.size() && groups < group.size(); ++i) {
    split.clear();
    for (uint32_t c = 0; c < group.size(); ++c) {
      uint32_t to = d.step_class(states[i], c);
      const RegexDfa::Constant constant = d.constant(to);
      if (constant != RegexDfa::Constant::kNo) {
        to = constant == RegexDfa::Constant::kEverything ? kUnknown : kUnknown - 1;
      } else if (std::find(states.begin(), states.end(), to) == states.end()) {
        states.push_back(to);
      }
      group[c] = split.try_emplace({group[c], to}, uint32_t(split.size())).first->second;
    }
    groups = split.size();
    if (states.size() > kStatesToMerge) {
      whole = false;
      break;
    }
  }
  uint32_t index = 0;
  if (whole && groups < group.size()) {
    index = uint32_t(std::find(merged_.begin() + 1, merged_.end(), group) - merged_.begin());
    if (index == merged_.size()) {
      held_bytes_ += group.size() * sizeof(uint32_t);
      merged_.push_back(std::move(group));
    }
  }
  merged_index_.set(key, index);
  return index;
}

void LexicalPool::collect_states(LexId id, std::vector<std::pair<uint32_t, uint32_t>>& out) {
  const Node n = nodes_[id];
  if (n.uniform) return;
  if (n.op == Op::kRegex) {
    out.push_back({n.a, merged_classes(n.a, n.b)});
  } else if (n.op == Op::kLagging) {
    collect_states(n.a, out);
    collect_states(stop_at(n.b).anything, out);
  } else if (n.op == Op::kNot) {
    collect_states(n.a, out);
  } else if (n.op != Op::kSet) {
    for (const LexId p : lists_.copy(n.a)) collect_states(p, out);
  }
}

uint32_t LexicalPool::classes_of(const LexCursor& cursor) {
  if (nodes_[cursor.goal].has_sets) return kNoClasses;
  std::vector<std::pair<uint32_t, uint32_t>> parts;
  collect_states(cursor.goal, parts);
  if (cursor.tracked != 0) {
    for (const LexId t : lists_.copy(cursor.tracked)) {
      if (nodes_[t].has_sets) return kNoClasses;
      collect_states(t, parts);
    }
  }
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  std::vector<uint32_t> key, dfas;
  for (const auto& [d, m] : parts) {
    key.insert(key.end(), {d, m});
    dfas.push_back(d);
  }
  const uint32_t list = lists_.intern(key);
  const uint32_t known = merged_partitions_.find(list);
  if (known != FlatMap::kMissing) return known;
  std::vector<uint32_t> starts;
  std::vector<std::vector<uint32_t>> signatures;
  interval_starts(dfas, starts);
  for (const uint32_t s : starts) {
    std::vector<uint32_t>& signature = signatures.emplace_back();
    for (const auto& [d, m] : parts) {
      const uint32_t c = dfas_[d]->class_of(s);
      signature.push_back(m == 0 ? c : merged_[m][c]);
    }
  }
  const uint32_t number = intern_partition(std::move(starts), std::move(signatures));
  merged_partitions_.set(list, number);
  return number;
}

uint32_t LexicalPool::class_of(const CharClasses& p, uint32_t c) const {
  const auto it = std::upper_bound(p.starts.begin(), p.starts.end(), c);
  return p.classes[size_t(it - p.starts.begin()) - 1];
}

void LexicalPool::collect_sets(LexId id, std::vector<StringSet>& out) {
  const Node n = nodes_[id];
  if (!n.has_sets) return;
  if (n.op == Op::kSet) {
    out.push_back(n.a);
  } else if (n.op == Op::kNot) {
    collect_sets(n.a, out);
  } else {
    for (const LexId p : lists_.copy(n.a)) collect_sets(p, out);
  }
}

std::vector<uint32_t> LexicalPool::representatives(LexId id) {
  std::vector<uint32_t> out;
  std::vector<StringSet> sets;
  collect_sets(id, sets);
  for (const StringSet s : sets)
    for (const auto& [c, next] : sets_.children(s)) out.push_back(c);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  const size_t members = out.size();
  const CharClasses& p = partition(dfas_of(id));
  std::vector<bool> done(p.representatives.size(), false);
  for (size_t i = 0; i < p.starts.size(); ++i) {
    if (done[p.classes[i]] || (p.starts[i] >= 0xD800 && p.starts[i] < 0xE000)) continue;
    const uint32_t end = i + 1 < p.starts.size() ? p.starts[i + 1] : kMaxCodePoint + 1;
    // Prefer a letter to a control character: witnesses are read by people.
    for (uint32_t c = p.starts[i] <= 'a' && 'a' < end ? 'a' : p.starts[i]; c < end; ++c) {
      if (std::binary_search(out.begin(), out.begin() + ptrdiff_t(members), c)) continue;
      out.push_back(c);
      done[p.classes[i]] = true;
      break;
    }
  }
  return out;
}

}  // namespace constrain
