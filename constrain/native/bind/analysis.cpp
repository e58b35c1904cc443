// Questions about programs without a vocabulary.
#include "constrain/analysis.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"

namespace constrain::bind {
namespace {

struct BoundAnalyzer {
  Analyzer core;
  std::timed_mutex mutex;
  BoundAnalyzer(std::shared_ptr<const Program> program, size_t max_memory)
      : core(std::move(program), max_memory) {}

  // Asks without the GIL: a question may take a while.
  template <class Fn>
  auto ask(Fn fn) {
    nb::gil_scoped_release release;
    lock_or_poll(mutex);
    const std::lock_guard lock(mutex, std::adopt_lock);
    return fn(core);
  }
};

}  // namespace

void bind_analysis(nb::module_& m) {
  nb::class_<BoundAnalyzer>(m, "Analyzer")
      .def("__init__",
           [](BoundAnalyzer* self, const BoundProgram& program, size_t max_memory) {
             std::shared_ptr<const Program> core = program.core;
             nb::gil_scoped_release release;
             new (self) BoundAnalyzer(std::move(core), max_memory);
           },
           nb::arg("program"), nb::arg("max_memory") = size_t{256} << 20)
      .def("satisfiable",
           [](BoundAnalyzer& self, const Clauses& clauses) {
             return self.ask([&](Analyzer& a) { return a.satisfiable(clauses); });
           },
           nb::arg("clauses"))
      .def("strings_are_finite",
           [](BoundAnalyzer& self, const Clauses& clauses) {
             return self.ask([&](Analyzer& a) { return a.strings_are_finite(clauses); });
           },
           nb::arg("clauses"))
      .def("example",
           [](BoundAnalyzer& self, const Clauses& clauses, size_t limit) -> nb::object {
             const std::optional<std::string> text =
                 self.ask([&](Analyzer& a) { return a.example(clauses, limit); });
             if (!text) return nb::none();
             return nb::bytes(text->data(), text->size());
           },
           nb::arg("clauses"), nb::arg("limit"))
      .def_prop_ro("memory", [](BoundAnalyzer& self) {
        return self.ask([](Analyzer& a) { return a.bytes(); });
      });
}

}  // namespace constrain::bind
