// Runs regex programs for the Python tests.  Reads commands, one a line, from standard input:
//
//   P n w1 ... wn     a program; answers "ok <classes>" or "error <message>"
//   M max_states      bound for the programs that follow
//   T c1 c2 ...       a text of code points; answers one word per position (before the first code
//                     point, after it, ...): accepting, live, constant and distance,
//                     as "<0|1><0|1><0|1|2>:<distance>"
//   A c1 c2 ...       the same text, but only whether it is accepted: "0" or "1"
//   S                 answers "<states> <bytes>"
#include <cstdint>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "constrain/errors.hpp"
#include "constrain/regex_dfa.hpp"

int main() {
  std::ios::sync_with_stdio(false);
  std::string line;
  std::unique_ptr<constrain::RegexDfa> dfa;
  size_t max_states = constrain::RegexDfa::kDefaultMaxStates;
  while (std::getline(std::cin, line)) {
    std::istringstream in(line);
    char command = 0;
    in >> command;
    try {
      if (command == 'M') {
        in >> max_states;
        std::cout << "ok\n";
      } else if (command == 'P') {
        size_t n = 0;
        in >> n;
        std::vector<int32_t> program(n);
        for (int32_t& word : program) in >> word;
        dfa.reset();
        dfa = std::make_unique<constrain::RegexDfa>(program, max_states);
        std::cout << "ok " << dfa->num_classes() << "\n";
      } else if (command == 'S' && dfa) {
        std::cout << dfa->num_states() << " " << dfa->bytes() << "\n";
      } else if ((command == 'T' || command == 'A') && dfa) {
        uint32_t state = dfa->start();
        std::string out;
        const auto describe = [&] {
          out += dfa->accepting(state) ? '1' : '0';
          out += dfa->live(state) ? '1' : '0';
          out += static_cast<char>('0' + static_cast<int>(dfa->constant(state)));
          out += ':' + std::to_string(dfa->distance(state)) + ' ';
        };
        if (command == 'T') describe();
        uint32_t code_point = 0;
        while (in >> code_point) {
          state = dfa->step(state, code_point);
          if (command == 'T') describe();
        }
        if (command == 'A') out += dfa->accepting(state) ? '1' : '0';
        std::cout << out << "\n";
      } else {
        std::cout << "error unknown command\n";
      }
    } catch (const constrain::LimitError& error) {
      std::cout << "limit " << error.limit << "\n";
    } catch (const constrain::Error& error) {
      std::cout << "error " << error.what() << "\n";
    }
    std::cout.flush();
  }
  return 0;
}
