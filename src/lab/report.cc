#include "lab/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <ostream>
#include <set>
#include <sstream>
#include <stdexcept>

namespace magpie::lab {
namespace {

std::string format(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

std::string brief(double value) {
  if (value >= 1e9) return format("%.3gG", value / 1e9);
  if (value >= 1e6) return format("%.3gM", value / 1e6);
  if (value >= 1e3) return format("%.3gk", value / 1e3);
  return format("%.3g", value);
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else
      result += c;
  }
  return result;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

const char* const kUnits[] = {
    "ms",          "per second",        "us", "us",         "Jain's index",
    "ns per turn", "part of busy time", "us", "% of steals"};

double percent(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(all);
}

struct Box {
  double x, y, width, height;
};

void plot(std::ostream& out, const Box& box, const std::vector<const Row*>& rows,
          const std::string& load, const std::string& value) {
  std::set<std::uint32_t> procs;
  std::map<std::string, std::map<std::uint32_t, double>> lines;
  std::vector<std::string> names;
  double most = 0;
  for (const Row* row : rows) {
    const double y = value_of(*row, value);
    if (lines.find(row->policy) == lines.end()) names.push_back(row->policy);
    lines[row->policy][row->procs] = y;
    procs.insert(row->procs);
    most = std::max(most, y);
  }
  if (most == 0) most = 1;
  const double first = std::log2(*procs.begin());
  const double last = std::max(first + 1, std::log2(static_cast<double>(*procs.rbegin())));
  const auto place_x = [&](double p) {
    return box.x + (std::log2(p) - first) / (last - first) * box.width;
  };
  const auto place_y = [&](double y) { return box.y + box.height * (1 - y / most); };
  const auto& all = value_names();
  const auto at = static_cast<std::size_t>(std::find(all.begin(), all.end(), value) - all.begin());
  out << "<text x='" << box.x << "' y='" << box.y - 8 << "' font-weight='bold'>" << escaped(load)
      << ": " << value << ", " << kUnits[at] << "</text>\n<rect x='" << box.x << "' y='" << box.y
      << "' width='" << box.width << "' height='" << box.height
      << "' fill='none' stroke='#999'/>\n<text x='" << box.x - 4 << "' y='" << box.y + 4
      << "' text-anchor='end'>" << brief(most) << "</text>\n<text x='" << box.x - 4 << "' y='"
      << box.y + box.height << "' text-anchor='end'>0</text>\n";
  for (const std::uint32_t p : procs)
    out << "<text x='" << place_x(p) << "' y='" << box.y + box.height + 14
        << "' text-anchor='middle'>" << p << "</text>\n";
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string colour = "hsl(" + std::to_string(i * 360 / names.size()) + ",70%,40%)";
    out << "<polyline fill='none' stroke-width='" << (i == 0 ? 2.5 : 1.2) << "' stroke='" << colour
        << "' points='";
    for (const auto& [p, y] : lines[names[i]])
      out << format("%.1f", place_x(p)) << ',' << format("%.1f", place_y(y)) << ' ';
    out << "'/>\n<text x='" << box.x + box.width + 8 << "' y='"
        << box.y + 10 + 12 * static_cast<double>(i) << "' fill='" << colour << "'>"
        << escaped(names[i]) << "</text>\n";
  }
}

}  // namespace

const std::vector<std::string>& value_names() {
  static const std::vector<std::string> names = {"time", "steals",    "p50",  "p99", "fairness",
                                                 "cost", "searching", "wait", "far"};
  return names;
}

double value_of(const Row& row, const std::string& name) {
  const Result& result = row.result;
  if (name == "time") return static_cast<double>(result.time) / 1e6;
  if (name == "steals") return result.steals_per_second();
  if (name == "p50") return static_cast<double>(result.latency.quantile(0.5)) / 1e3;
  if (name == "p99") return static_cast<double>(result.latency.quantile(0.99)) / 1e3;
  if (name == "fairness") return result.fairness();
  if (name == "cost") return result.cost_per_turn();
  if (name == "searching") return result.searching_share();
  if (name == "wait") return result.mean_wait() / 1e3;
  if (name == "far") return percent(result.far_steals, result.steals);
  std::string known;
  for (const std::string& one : value_names()) known += (known.empty() ? "" : ", ") + one;
  throw std::invalid_argument("there is no value " + name + ": there are " + known);
}

void print_table(std::ostream& out, const Header& header, const std::vector<Row>& rows) {
  out << "# " << header.command << ", seed " << header.seed
      << "\n# costs in ns: " << header.costs.text() << "\n";
  const bool has_distances = !header.topology.empty();
  if (has_distances) out << "# machine: " << header.topology << "\n";
  char line[256];
  std::snprintf(line, sizeof line, "%-12s %-20s %4s %10s %10s %9s %9s %9s %8s %9s %9s", "load",
                "policy", "Ps", "time ms", "steals/s", "wait us", "p50 us", "p99 us", "fairness",
                "ns/turn", "search %");
  out << line << (has_distances ? "  cache %   far %  line far %\n" : "\n");
  for (const Row& row : rows) {
    std::snprintf(line, sizeof line, "%-12s %-20s %4u %10.3f %10s %9s %9s %9s %8.3f %9.1f %9.2f",
                  row.load.c_str(), row.policy.c_str(), row.procs, value_of(row, "time"),
                  brief(value_of(row, "steals")).c_str(), brief(value_of(row, "wait")).c_str(),
                  brief(value_of(row, "p50")).c_str(), brief(value_of(row, "p99")).c_str(),
                  value_of(row, "fairness"), value_of(row, "cost"),
                  100 * value_of(row, "searching"));
    out << line;
    if (has_distances) {
      const Result& result = row.result;
      std::snprintf(
          line, sizeof line, " %8.1f %7.1f %11.1f", percent(result.cache_steals, result.steals),
          percent(result.far_steals, result.steals), percent(result.far_shared, result.shared));
      out << line;
    }
    out << "\n";
  }
}

void print_json(std::ostream& out, const Header& header, const std::vector<Row>& rows) {
  out << "{\"command\": " << quoted(header.command) << ", \"seed\": " << header.seed
      << ", \"costs_ns\": " << quoted(header.costs.text())
      << ", \"topology\": " << quoted(header.topology) << ", \"rows\": [";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    out << (i == 0 ? "\n" : ",\n") << "  {\"load\": " << quoted(row.load)
        << ", \"policy\": " << quoted(row.policy) << ", \"procs\": " << row.procs
        << ", \"time_ns\": " << row.result.time << ", \"turns\": " << row.result.turns
        << ", \"ended\": " << row.result.ended << ", \"steals\": " << row.result.steals
        << ", \"far_steals\": " << row.result.far_steals
        << ", \"cache_steals\": " << row.result.cache_steals
        << ", \"stolen\": " << row.result.stolen << ", \"shared\": " << row.result.shared
        << ", \"far_shared\": " << row.result.far_shared
        << ", \"runnext_stolen\": " << row.result.runnext_stolen
        << ", \"probes\": " << row.result.probes << ", \"wakes\": " << row.result.wakes
        << ", \"searches\": " << row.result.searches << ", \"spills\": " << row.result.spills
        << ", \"mean_wait_ns\": " << format("%.1f", row.result.mean_wait())
        << ", \"p50_ns\": " << row.result.latency.quantile(0.5)
        << ", \"p99_ns\": " << row.result.latency.quantile(0.99)
        << ", \"fairness\": " << format("%.4f", row.result.fairness())
        << ", \"cost_per_turn_ns\": " << format("%.2f", row.result.cost_per_turn())
        << ", \"searching_share\": " << format("%.5f", row.result.searching_share()) << "}";
  }
  out << "\n]}\n";
}

void print_svg(std::ostream& out, const Header& header, const std::vector<Row>& rows,
               const std::vector<std::string>& values) {
  std::vector<std::string> loads;
  for (const Row& row : rows)
    if (std::find(loads.begin(), loads.end(), row.load) == loads.end()) loads.push_back(row.load);
  constexpr double kWidth = 560, kHeight = 300;
  out << "<svg xmlns='http://www.w3.org/2000/svg' font-family='sans-serif' font-size='11' width='"
      << kWidth * static_cast<double>(values.size()) << "' height='"
      << kHeight * static_cast<double>(loads.size()) + 30 << "'>\n"
      << "<rect width='100%' height='100%' fill='white'/>\n<text x='10' y='16'>"
      << escaped(header.command) << ", seed " << header.seed
      << "; costs in ns: " << escaped(header.costs.text()) << "</text>\n";
  for (std::size_t l = 0; l < loads.size(); ++l) {
    std::vector<const Row*> chosen;
    for (const Row& row : rows)
      if (row.load == loads[l]) chosen.push_back(&row);
    for (std::size_t v = 0; v < values.size(); ++v)
      plot(out,
           {60 + kWidth * static_cast<double>(v), 60 + kHeight * static_cast<double>(l),
            kWidth - 220, kHeight - 80},
           chosen, loads[l], values[v]);
  }
  out << "</svg>\n";
}

void set(Costs& costs, const std::string& assignment) {
  const std::map<std::string, Ns*> all = {
      {"pop", &costs.pop},          {"switch", &costs.switching},
      {"spawn", &costs.spawn},      {"ready", &costs.ready},
      {"probe", &costs.probe_near}, {"probe-far", &costs.probe_far},
      {"steal", &costs.steal_near}, {"steal-far", &costs.steal_far},
      {"miss", &costs.miss},        {"miss-far", &costs.miss_far},
      {"global", &costs.global},    {"wake-call", &costs.wake_call},
      {"wake", &costs.wake},        {"spin-round", &costs.spin_round},
      {"timer", &costs.timer}};
  const std::size_t at = assignment.find('=');
  const auto found = all.find(assignment.substr(0, at));
  if (found == all.end() || at == std::string::npos) {
    std::string known;
    for (const auto& [name, cost] : all) known += (known.empty() ? "" : ", ") + name;
    throw std::invalid_argument(assignment + ": there are " + known);
  }
  const std::string value = assignment.substr(at + 1);
  std::size_t used = 0;
  try {
    *found->second = std::stoll(value, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != value.size() || *found->second < 0)
    throw std::invalid_argument(assignment + ": nanoseconds are expected");
}

}  // namespace magpie::lab
