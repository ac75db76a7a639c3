#include "tileweave/trace/timeline_html.h"

#include <algorithm>

#include "tileweave/core/atomic_file.h"
#include "tileweave/trace/duration.h"
#include "tileweave/trace/escape.h"
#include "tileweave/trace/exposed_time.h"
#include "tileweave/trace/node_colors.h"
#include "tileweave/trace/timeline_page.h"

namespace tileweave {
namespace {

// The static half of the page: everything that can be said in words and tables. What comes from the
// trace passes through html_escape or is made of digits.
class TimelinePage {
 public:
  TimelinePage(const Trace& trace, const TimelineOptions& options)
      : trace_(trace),
        options_(options),
        times_(exposed_time(trace)),
        colors_(color_nodes(trace)) {}

  std::string write() {
    write_head();
    out_ += "<body>\n<main>\n";
    write_header();
    write_cards();
    write_stage();
    for (const RankTime& rank : times_.ranks) write_tables(rank);
    write_footer();
    out_ += "</main>\n<script type=\"application/json\" id=\"trace-data\">";
    out_ += timeline_data(trace_, colors_, options_.max_arrows);
    out_ += "</script>\n<script>";
    out_ += timeline_script();
    out_ += "</script>\n</body>\n</html>\n";
    return std::move(out_);
  }

 private:
  std::string duration(std::uint64_t value) const {
    return html_escape(format_duration(value, trace_.time_unit));
  }
  static std::string share(std::uint64_t part, std::uint64_t whole) {
    return format_share(static_cast<double>(part), static_cast<double>(whole));
  }
  static std::string plural(std::uint64_t count, const std::string& one, const std::string& many) {
    return format_count(count) + " " + (count == 1 ? one : many);
  }

  void write_head() {
    out_ += "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
    // The page may fetch nothing at all: what it shows is in it.
    out_ +=
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
        "script-src 'unsafe-inline'; style-src 'unsafe-inline'\">\n";
    out_ += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    out_ += "<title>" + html_escape(trace_.title) + " (" + html_escape(trace_.clock) +
            ") \xE2\x80\x93 tile timeline</title>\n<style>";
    out_ += timeline_style();
    out_ += "</style>\n</head>\n";
  }

  void write_header() {
    const std::string clock = html_escape(trace_.clock);
    out_ += "<header><div><h1>" + html_escape(trace_.title) + "<span class=\"badge " + clock +
            "\">" + clock + "</span></h1>\n<p class=\"facts\">";
    if (times_.ranks.size() > 1) {
      out_ += plural(times_.ranks.size(), "rank", "ranks") + " \xC2\xB7 ";
    }
    out_ += plural(times_.sm_time.num_sms, "SM", "SMs") + " \xC2\xB7 " +
            plural(trace_.nodes.size(), "node", "nodes") + " \xC2\xB7 " +
            plural(trace_.records.size(), "block", "blocks") + " \xC2\xB7 " +
            plural(trace_.arrows.size(), "tile dependency", "tile dependencies") + "</p></div>\n";
    out_ += "<button id=\"theme\" type=\"button\">Light / dark</button></header>\n";
    if (trace_.num_dropped() > 0) {
      out_ += "<p class=\"note\"><strong>Incomplete:</strong> " +
              plural(trace_.num_dropped(), "record was", "records were") +
              " lost because a ring buffer was full. Times below cover what was kept.</p>\n";
    }
    if (trace_.arrows.size() > options_.max_arrows) {
      out_ += "<p class=\"note\">" +
              plural(trace_.arrows.size() - options_.max_arrows, "tile dependency is",
                     "tile dependencies are") +
              " not in this page; the first " + format_count(options_.max_arrows) + " are.</p>\n";
    }
    if (trace_.records.empty()) {
      out_ += "<p class=\"note\">No blocks were recorded.</p>\n";
    }
    out_ +=
        "<noscript><p class=\"note\">The timeline needs JavaScript; the tables do not.</p>"
        "</noscript>\n";
  }

  void write_cards() {
    const SmTime& sm = times_.sm_time;
    out_ +=
        "<div class=\"cards\"><section class=\"panel\" aria-label=\"Makespan and SM time\">"
        "<p>Makespan</p><p class=\"big\">" +
        duration(times_.makespan) + "</p>\n<div class=\"bar sm\" aria-hidden=\"true\">";
    write_segment("class=\"c\"", sm.computing, sm.total(), "", "");
    write_segment("class=\"w\"", sm.waiting, sm.total(), "", "");
    write_segment("", sm.idle, sm.total(), "", "");
    out_ +=
        "</div>\n<ul class=\"keys\"><li><span class=\"swatch\" "
        "style=\"background:var(--accent)\"></span>computing <b>" +
        share(sm.computing, sm.total()) +
        "</b></li><li><span class=\"swatch wait\"></span>waiting <b>" +
        share(sm.waiting, sm.total()) + "</b></li><li><span class=\"swatch idle\"></span>idle <b>" +
        share(sm.idle, sm.total()) + "</b></li></ul></section>\n";

    out_ += "<section class=\"panel\" aria-label=\"Exposed time\"><p>Exposed time: which " +
            std::string(colors_.operators_are_clearer ? "operator" : "node") +
            " the run was waiting for, moment by moment</p>\n";
    for (const RankTime& rank : times_.ranks) write_exposed_bar(rank);
    if (!times_.ranks.empty()) write_exposed_keys(times_.ranks.front());
    out_ += "</section></div>\n";
  }

  void write_segment(const std::string& attributes, std::uint64_t part, std::uint64_t whole,
                     const std::string& color, const std::string& name) {
    if (part == 0 || whole == 0) return;
    out_ += "<span " + attributes + " style=\"flex-grow:" +
            std::to_string(static_cast<double>(part) / static_cast<double>(whole)) +
            (color.empty() ? "" : ";background:" + color) + "\"";
    if (!name.empty()) {
      out_ += " title=\"" + html_escape(name) + ": " + duration(part) + "\"";
    }
    out_ += ">";
    if (!name.empty() && part >= whole / 10) out_ += html_escape(name);
    out_ += "</span>";
  }

  void write_exposed_bar(const RankTime& rank) {
    if (times_.ranks.size() > 1) {
      out_ += "<p class=\"label\">rank " + std::to_string(rank.rank) + "</p>";
    }
    out_ += "<div class=\"bar exposed\" aria-hidden=\"true\">";
    if (colors_.operators_are_clearer) {
      for (const OperatorTime& op : rank.operators) {
        write_segment("", op.exposed, rank.makespan, color_of_operator(trace_, op.op), op.op);
      }
    } else {
      for (const NodeTime& node : rank.nodes) {
        write_segment("", node.exposed, rank.makespan, colors_.by_node[node.node],
                      trace_.nodes[node.node].name);
      }
    }
    out_ += "</div>\n";
  }

  void write_exposed_keys(const RankTime& rank) {
    out_ += "<ul class=\"keys\">";
    const auto write_key = [&](const std::string& color, const std::string& name,
                               std::uint64_t exposed) {
      out_ += "<li><span class=\"swatch\" style=\"background:" + color + "\"></span>" +
              html_escape(name);
      if (times_.ranks.size() == 1) out_ += " <b>" + share(exposed, rank.makespan) + "</b>";
      out_ += "</li>";
    };
    if (colors_.operators_are_clearer) {
      for (const OperatorTime& op : rank.operators) {
        write_key(color_of_operator(trace_, op.op), op.op, op.exposed);
      }
    } else {
      for (const NodeTime& node : rank.nodes) {
        write_key(colors_.by_node[node.node], trace_.nodes[node.node].name, node.exposed);
      }
    }
    out_ += "</ul>\n";
  }

  void write_stage() {
    const auto button = [&](const char* id, const char* text, const char* label) {
      out_ += std::string("<button type=\"button\" id=\"") + id + "\" aria-label=\"" + label +
              "\" title=\"" + label + "\">" + text + "</button>";
    };
    out_ +=
        "<section class=\"panel\" aria-label=\"Timeline\">\n<div class=\"tools\">"
        "<h2>Every block on its SM</h2>"
        "<label>Colour by <select id=\"color\"><option value=\"by_node\">node</option>"
        "<option value=\"by_operator\">operator</option></select></label>";
    button("fit", "Whole run", "Show the whole run");
    button("in", "+", "Zoom in");
    button("out", "\xE2\x88\x92", "Zoom out");
    button("taller", "Taller rows", "Make rows taller");
    button("flatter", "Flatter rows", "Make rows flatter");
    out_ +=
        "</div>\n<div class=\"stage\" id=\"stage\">"
        "<canvas id=\"blocks\" tabindex=\"0\" role=\"img\" aria-describedby=\"how\" "
        "aria-label=\"Timeline of " +
        plural(trace_.records.size(), "block", "blocks") + " on " +
        plural(times_.sm_time.num_sms, "SM", "SMs") + ", " + duration(times_.makespan) +
        " long; arrow keys step through the blocks\"></canvas>"
        "<canvas id=\"marks\" aria-hidden=\"true\"></canvas><div id=\"tip\"></div></div>\n"
        "<p class=\"hint\" id=\"how\"><span><span class=\"swatch\" "
        "style=\"background:var(--soft)\"></span>computing</span>"
        "<span><span class=\"swatch wait\"></span>waiting for tiles</span>"
        "<span>\xE2\x97\xA2 last signal</span>"
        "<span>point at a block: <b class=\"in\">what it waited for</b>, "
        "<b class=\"out\">what it fed</b></span>"
        "<span><kbd>click</kbd> keeps it</span><span><kbd>wheel</kbd> zooms</span>"
        "<span><kbd>drag</kbd> moves</span><span><kbd>Shift</kbd>+<kbd>wheel</kbd> scrolls "
        "SMs</span><span><kbd>\xE2\x86\x90</kbd> <kbd>\xE2\x86\x92</kbd> <kbd>\xE2\x86\x91</kbd> "
        "<kbd>\xE2\x86\x93</kbd> step</span><span><kbd>Esc</kbd> clears</span></p>\n"
        "<div id=\"detail\" aria-live=\"polite\"></div></section>\n";
  }

  void write_track(const std::string& color, std::uint64_t part, std::uint64_t whole) {
    const double percent =
        whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
    out_ += "<span class=\"track\"><i style=\"width:" + std::to_string(percent) +
            "%;background:" + color + "\"></i></span>" + share(part, whole);
  }

  void write_tables(const RankTime& rank) {
    const std::string of_rank =
        times_.ranks.size() > 1 ? ", rank " + std::to_string(rank.rank) : std::string();
    out_ += "<div class=\"tables\"><section class=\"panel\"><h2>Operators" + of_rank +
            "</h2><div class=\"scroll\"><table><thead><tr><th scope=\"col\">operator</th>"
            "<th scope=\"col\">nodes</th><th scope=\"col\">exposed</th><th scope=\"col\">share</th>"
            "<th scope=\"col\">waiting</th><th scope=\"col\">busy</th></tr></thead><tbody>\n";
    std::uint64_t waiting = 0;
    std::uint64_t busy = 0;
    for (const OperatorTime& op : rank.operators) {
      const std::string color = color_of_operator(trace_, op.op);
      out_ += "<tr><td>";
      if (colors_.operators_are_clearer) {
        out_ += "<span class=\"swatch\" style=\"background:" + color + "\"></span>";
      }
      out_ += html_escape(op.op) + "</td><td>" + format_count(op.nodes) + "</td><td>" +
              duration(op.exposed) + "</td><td>";
      write_track(colors_.operators_are_clearer ? color : "var(--soft)", op.exposed, rank.makespan);
      out_ += "</td><td>" + duration(op.waiting) + "</td><td>" + duration(op.busy) + "</td></tr>\n";
      waiting += op.waiting;
      busy += op.busy;
    }
    out_ += "</tbody><tfoot><tr><td>all</td><td>" + format_count(rank.nodes.size()) + "</td><td>" +
            duration(rank.makespan) + "</td><td></td><td>" + duration(waiting) + "</td><td>" +
            duration(busy) + "</td></tr></tfoot></table></div></section>\n";

    out_ +=
        "<section class=\"panel\"><h2>Nodes" + of_rank +
        "</h2><div class=\"scroll\"><table><thead><tr><th scope=\"col\">node</th>"
        "<th scope=\"col\">blocks</th><th scope=\"col\">exposed</th><th scope=\"col\">share</th>"
        "<th scope=\"col\">waiting</th><th scope=\"col\">busy</th><th scope=\"col\">start</th>"
        "<th scope=\"col\">finish</th></tr></thead><tbody>\n";
    for (const NodeTime& node : rank.nodes) {
      const std::string& color = colors_.operators_are_clearer ? colors_.by_operator[node.node]
                                                               : colors_.by_node[node.node];
      out_ += "<tr data-node=\"" + std::to_string(node.node) +
              "\" tabindex=\"0\" title=\"Highlight on the timeline\"><td><span class=\"swatch\" "
              "style=\"background:" +
              color + "\"></span>" + html_escape(trace_.nodes[node.node].name) + "</td><td>" +
              format_count(node.tiles) + "</td><td>" + duration(node.exposed) + "</td><td>";
      write_track(color, node.exposed, rank.makespan);
      out_ += "</td><td>" + duration(node.waiting) + "</td><td>" + duration(node.busy) +
              "</td><td>" + duration(node.start) + "</td><td>" + duration(node.finish) +
              "</td></tr>\n";
    }
    out_ += "</tbody></table></div></section></div>\n";
  }

  void write_footer() {
    out_ +=
        "<footer><p><strong>Exposed</strong> time goes, at any moment, to the node that "
        "finishes next: a node counts only what sticks out after all nodes that finish before "
        "it, so the column adds up to the makespan. <strong>Waiting</strong> and "
        "<strong>busy</strong> add up all blocks of a node, side by side ones too.</p>";
    if (trace_.is_modelled()) {
      out_ +=
          "<p>Times are <strong>modelled</strong>: they come from a virtual clock and rank "
          "schedules; they are not a measurement.</p>";
    }
    out_ += "<p>Times count from the run start, " + std::to_string(times_.run_start) + " " +
            html_escape(trace_.time_unit) + " on the clock of the run.</p></footer>\n";
  }

  const Trace& trace_;
  const TimelineOptions& options_;
  const ExposedTime times_;
  const NodeColors colors_;
  std::string out_;
};

}  // namespace

std::string timeline_html(const Trace& trace, const TimelineOptions& options) {
  check_trace(trace);
  return TimelinePage(trace, options).write();
}

void write_timeline_html(const Trace& trace, const std::string& path,
                         const TimelineOptions& options) {
  write_file_atomically(path, timeline_html(trace, options));
}

}  // namespace tileweave
