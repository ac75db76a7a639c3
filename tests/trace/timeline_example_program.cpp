// Writes example timelines into the folder named by its argument: open_timeline.py opens them.
#include <cstdio>
#include <exception>
#include <string>

#include "tests/trace/example_traces.h"
#include "tileweave/trace/exposed_time.h"
#include "tileweave/trace/perfetto.h"
#include "tileweave/trace/timeline_html.h"

namespace {

void write_all(const tileweave::Trace& trace, const std::string& stem) {
  tileweave::write_timeline_html(trace, stem + ".html");
  tileweave::write_perfetto(trace, stem + ".json");
  std::printf("%s\n", tileweave::exposed_time_table(trace).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  using namespace tileweave::testing;
  if (argc != 2) {
    std::fprintf(stderr, "usage: timeline_example_program FOLDER\n");
    return 2;
  }
  const std::string folder = std::string(argv[1]) + "/";
  try {
    write_all(figure1_overlap(), folder + "figure1");
    write_all(figure1_serial(), folder + "figure1_serial");
    write_all(schedule("Decode step, 132 SMs", decode_step(7), 132, 2, 0, 1'000'000, 1),
              folder + "decode");
    tileweave::Trace large =
        schedule("Decode step, 37 layers", decode_step(37), 132, 2, 0, 1'000'000, 2);
    write_all(large, folder + "large");
    tileweave::Trace ranks = schedule("Two ranks", decode_step(1), 8, 2, 0, 5'000, 3);
    append_rank(ranks, schedule("", decode_step(1), 8, 2, 1, 6'000, 4));
    ranks.dropped = {0, 17};
    write_all(ranks, folder + "two_ranks");
    tileweave::Trace hostile = figure1_overlap();
    hostile.title = "</title><script>throw new Error('title ran')</script>";
    hostile.nodes[0].name = "</script><b>bold</b><script>throw new Error('name ran')</script>";
    hostile.nodes[0].op = "\"><img src=x onerror=\"throw new Error('op ran')\">";
    hostile.nodes[1].name = "quote \" back \\ slash \n \xFF \xF0\x9F\x98\x80";
    hostile.tensors[0] = "<!--<script>";
    write_all(hostile, folder + "hostile");
    tileweave::Trace empty;
    empty.title = "Nothing ran";
    empty.clock = "measured";
    write_all(empty, folder + "empty");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
