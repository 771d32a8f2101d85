// The segments that the integration of a head begins with: between corners, and short enough for kinks to be detected.
#pragma once

#include "smooth/settle.hpp"
#include "limits.hpp"

namespace gigrad {

// Adds a segment, cut at times inside it, to a list; `kinks`: whether these are kinks of the head.
inline void cut_segment(Segment s, const std::vector<double>& times, std::vector<Segment>& out, bool kinks = false) {
    for (const double time : times) {
        out.push_back({s.panel, s.state, s.low, time, s.left, -1, s.low_kink, kinks});
        s.low = time, s.left = -1, s.low_kink = kinks, s.whole = false;
    }
    out.push_back(s);
}

// A level that is passed in both directions is not visible at the ends: long segments are divided. Curves that few
// nodes describe have few extrema, and a missed kink increases the error of its segment.
inline std::vector<Segment> in_parts(const PanelsView& view, const std::vector<Segment>& list) {
    std::vector<Segment> out;
    out.reserve(list.size());
    const double most = 0.8 * (static_cast<double>(view.order) - 3.0);
    for (const Segment& s : list) {
        // if only lines are read, the panel has one node, and the smoothness of the head depends on the path's length
        const double parts =
            std::ceil(view.curves > 0 ? most * (s.length() / view.length(s.panel)) : FIRST_PARTS * s.length());
        if (parts <= 1.0) {
            out.push_back(s);
            continue;
        }
        std::vector<double> times;
        for (double part = 1.0; part < parts; part += 1.0) times.push_back(s.low + s.length() * part / parts);
        cut_segment(s, times, out);
    }
    return out;
}

// Cut where the input of a step with kinks may have an extremum.
inline std::vector<Segment> without_turns(Settler& settler, const std::vector<Segment>& list, uint8_t* unsure) {
    std::vector<std::pair<size_t, double>> found;
    settler.turns(list, unsure, [&](size_t segment, double time) { found.emplace_back(segment, time); });
    if (found.empty()) return list;
    std::sort(found.begin(), found.end());
    std::vector<Segment> out;
    size_t at = 0;
    for (size_t i = 0; i < list.size(); ++i) {
        std::vector<double> times;
        for (; at < found.size() && found[at].first == i; ++at)
            if (times.empty() || found[at].second - times.back() > SHORTEST_SEGMENT) times.push_back(found[at].second);
        cut_segment(list[i], times, out);
    }
    return out;
}

// The parts of panels between their corners. A corner at the end of a panel leaves an empty one.
inline std::vector<Segment> between_corners(const PanelsView& view, size_t begin, size_t end) {
    std::vector<Segment> out;
    size_t corners = 0;
    for (size_t p = begin; p < end; ++p) corners += static_cast<size_t>(view.end[p] - view.begin[p]);
    out.reserve(corners + (end - begin));
    for (size_t p = begin; p < end; ++p) {
        double low = view.low[p];
        int64_t left = -1;
        for (int64_t c = view.begin[p]; c < view.end[p]; ++c) {
            const double time = std::min(std::max(view.corner_time[c], view.low[p]), view.high[p]);
            out.push_back({p, view.state[p] + (c - view.begin[p]), low, time, left, c});
            low = time, left = c;
        }
        out.push_back({p, view.state[p] + (view.end[p] - view.begin[p]), low, view.high[p], left, -1});
    }
    return out;
}

// The same, short enough for every kink of the head to be detected at their ends.
inline std::vector<Segment> first_segments(const PanelsView& view, Settler& settler, size_t begin, size_t end,
                                           uint8_t* unsure) {
    std::vector<Segment> out = between_corners(view, begin, end);
    return settler.turn() ? without_turns(settler, in_parts(view, out), unsure) : out;
}

}  // namespace gigrad
