// parallel.cc: a picture of the Mandelbrot set, one parallel loop over its rows; and two sums over
// a million numbers.
#include <magpie/magpie.h>

#include <cmath>
#include <complex>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace {

constexpr int kWidth = 72, kHeight = 24, kMostSteps = 2000;

int steps_to_escape(std::complex<double> c) {
  std::complex<double> z = 0;
  int steps = 0;
  while (steps < kMostSteps && std::norm(z) < 4) {
    z = z * z + c;
    ++steps;
  }
  return steps;
}

char shade(int steps) {
  if (steps == kMostSteps) return '#';
  return steps > 20 ? '+' : steps > 7 ? '.' : ' ';
}

}  // namespace

int main() {
  return magpie::run([] {
    // Rows through the middle take much longer than others: nobody has to share them out by hand.
    std::vector<std::string> rows(kHeight, std::string(kWidth, ' '));
    magpie::parallel_for(0, kHeight, [&](int y) {
      for (int x = 0; x < kWidth; ++x) {
        std::complex<double> c(-2.2 + 3.2 * x / kWidth, -1.2 + 2.4 * y / kHeight);
        rows[static_cast<std::size_t>(y)][static_cast<std::size_t>(x)] = shade(steps_to_escape(c));
      }
    });
    for (const std::string& row : rows) std::puts(row.c_str());

    std::vector<double> terms(1'000'000);
    magpie::parallel_for(std::size_t{0}, terms.size(), [&](std::size_t i) {
      double n = static_cast<double>(i) + 1;
      terms[i] = 1 / (n * n);
    });
    double sum = magpie::parallel_reduce(terms, 0.0, std::identity{}, std::plus<>{});
    const double limit = std::acos(-1.0) * std::acos(-1.0) / 6;
    std::printf("1/1 + 1/4 + 1/9 + ... = %.6f, pi * pi / 6 = %.6f\n", sum, limit);

    // Joining strings does not commute: neighbours stay in order.
    std::string alphabet = magpie::parallel_reduce(
        0, 26, std::string(), [](int i) { return std::string(1, static_cast<char>('a' + i)); },
        std::plus<>{});
    std::puts(alphabet.c_str());
    const bool drawn = rows[kHeight / 2].find('#') != std::string::npos;
    const bool added = std::abs(sum - limit) < 2e-6;
    return drawn && added && alphabet == "abcdefghijklmnopqrstuvwxyz" ? 0 : 1;
  });
}
