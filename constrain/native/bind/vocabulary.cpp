#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "constrain/lexical_pool.hpp"

namespace constrain::bind {
namespace {

PoolFactory pool_factory() {
  return {[] { return std::make_unique<LexicalPool>(); },
          [](const LexicalStepper& pool) {
            return static_cast<const LexicalPool&>(pool).bytes();
          }};
}

template <class Fn>
void for_each_shard(Vocabulary& vocabulary, Fn fn) {
  for (size_t i = 0; i < Vocabulary::kMostShards; ++i) {
    Shard* shard = vocabulary.existing_shard(i);
    if (!shard) continue;
    const Guard guard(shard->mutex());
    shard->trim();
    fn(*shard);
  }
}

void make_vocabulary(BoundVocabulary* self, nb::handle tokens, nb::handle eos_token_ids,
                     uint32_t size, size_t max_memory) {
  nb::object items = nb::steal(PySequence_Fast(tokens.ptr(), "tokens must be a sequence"));
  if (!items.is_valid()) throw nb::python_error();
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(items.ptr());
  PyObject** entries = PySequence_Fast_ITEMS(items.ptr());
  size_t total = 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (entries[i] == Py_None) continue;
    if (!PyBytes_Check(entries[i])) throw nb::type_error("each token must be bytes or None");
    total += static_cast<size_t>(PyBytes_GET_SIZE(entries[i]));
  }
  if (total > UINT32_MAX) throw nb::value_error("the tokens hold more than 4 GiB");
  std::string blob;
  blob.reserve(total);
  std::vector<uint32_t> offsets;
  offsets.reserve(static_cast<size_t>(count) + 1);
  offsets.push_back(0);
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (entries[i] != Py_None) {
      blob.append(PyBytes_AS_STRING(entries[i]),
                  static_cast<size_t>(PyBytes_GET_SIZE(entries[i])));
    }
    offsets.push_back(static_cast<uint32_t>(blob.size()));
  }
  auto eos = nb::cast<std::vector<uint32_t>>(eos_token_ids);
  nb::gil_scoped_release release;
  auto core = std::make_shared<Vocabulary>(std::move(blob), std::move(offsets), std::move(eos),
                                           size, pool_factory(), max_memory);
  new (self) BoundVocabulary{std::move(core)};
}

}  // namespace

void bind_vocabulary(nb::module_& m) {
  nb::class_<BoundVocabulary>(m, "Vocabulary", nb::is_weak_referenceable())
      .def("__init__", &make_vocabulary, nb::arg("tokens"), nb::arg("eos_token_ids"),
           nb::arg("size"), nb::arg("max_memory") = size_t{256} << 20,
           "tokens: a sequence of bytes or None; size: width of the logits; max_memory: bytes that "
           "lexical automata and tables may hold before the least recently used are dropped.")
      .def_prop_ro("size", [](const BoundVocabulary& v) { return v.core->size(); })
      .def_prop_ro("token_count", [](const BoundVocabulary& v) { return v.core->token_count(); })
      .def_prop_ro("node_count",
                   [](const BoundVocabulary& v) { return v.core->trie().node_count(); })
      .def_prop_ro("max_memory", [](const BoundVocabulary& v) { return v.core->max_memory(); })
      .def_prop_ro("memory",
                   [](const BoundVocabulary& v) {
                     size_t total = 0;
                     for_each_shard(*v.core, [&](Shard& shard) { total += shard.bytes(); });
                     return total;
                   },
                   "Bytes of lexical automata and tables that are held now.")
      .def_prop_ro("counters",
                   [](const BoundVocabulary& v) {
                     size_t held = 0;
                     uint64_t built = 0, lexical = 0, machine = 0;
                     for_each_shard(*v.core, [&](Shard& shard) {
                       held += shard.tables().count();
                       built += shard.tables().built();
                       lexical += shard.tables().steps();
                       machine += shard.filler().steps();
                     });
                     nb::dict result;
                     result["tables"] = held;
                     result["tables_built"] = built;
                     result["lexical_steps"] = lexical;
                     result["machine_steps"] = machine;
                     return result;
                   },
                   "What mask filling did so far, for benchmarks: tables held and built, steps.")
      .def("set_max_memory",
           [](BoundVocabulary& v, size_t limit) {
             nb::gil_scoped_release release;
             v.core->set_max_memory(limit);
           },
           nb::arg("limit"));
}

}  // namespace constrain::bind
