#include "cli/kernel_report.h"

#include <fmt/format.h>

#include "cli/version.h"
#include "tileweave/core/atomic_file.h"

namespace tileweave::cli {

std::string kernel_table(const KernelReport& report) {
  std::string text =
      fmt::format("{}, {} SMs; streaming rate {:.2f} TB/s; medians of {}; us per node\n",
                  report.machine, report.sms, report.streaming_rate * 1e-12, report.repeat);
  std::string name;
  for (const KernelRow& row : report.rows) {
    std::string title =
        fmt::format("{}, {}, {} rows, {}{:.1f} MB; {} {:.2f} us", row.name, row.kind, row.rows,
                    row.context > 0 ? fmt::format("{} keys, ", row.context) : "", row.mb,
                    report.beside, row.beside);
    if (title != name) {
      text += title + "\n";
      name = std::move(title);
    }
    text += fmt::format("  {:<62} {:>8.2f} us {:>+7.2f} {:>6.2f} TB/s {:>6.1f} %\n", row.arm,
                        row.us, row.us - row.beside, row.mb / row.us,
                        row.mb * 1e12 / row.us / report.streaming_rate * 100);
  }
  return text;
}

Json kernel_json(const KernelReport& report) {
  Json rows = Json::array();
  for (const KernelRow& row : report.rows) {
    Json json = {{"case", row.name}, {"kind", row.kind}, {"rows", row.rows},       {"mb", row.mb},
                 {"arm", row.arm},   {"us", row.us},     {"beside_us", row.beside}};
    if (row.context > 0) json["context"] = row.context;
    rows.push_back(std::move(json));
  }
  return {{"verb", report.verb},
          {"version", kVersion},
          {"device", "cuda"},
          {"machine", report.machine},
          {"sms", report.sms},
          {"repeat", report.repeat},
          {"streaming_rate", report.streaming_rate},
          {"beside", report.beside},
          {"rows", rows}};
}

void write_report(const KernelReport& report, OutputForm form, const std::string& json_file,
                  std::ostream& out) {
  const std::string json = to_text(kernel_json(report));
  if (!json_file.empty()) write_file_atomically(json_file, json);
  out << (form == OutputForm::kJson ? json : kernel_table(report));
}

}  // namespace tileweave::cli
