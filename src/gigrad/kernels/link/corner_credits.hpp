// The credit of the variables at given corners under a link, where the jumps of a path are needed singly and not as a
// sum.
#pragma once

#include "link/corner_walk.hpp"
#include "link/linked.hpp"

namespace gigrad {

// values: (corners, variables, link outputs); large: (corners,). Corner i is that of pair[i] at time[i]. A corner with
// too many players to enumerate is left at zero, and their number is in `large`, which is 0 elsewhere.
inline void corner_credits(const Forest& forest, const Link& link, const Rows& starts, const Rows& ends,
                           const int64_t* pair, const double* time, size_t n_corners, size_t n_threads, double* values,
                           int64_t* large) {
    check_pairs(forest, starts, ends);
    check_link(forest, link);
    check_queries(starts, pair, time, n_corners);
    const size_t table = forest.n_variables() * link.n_outputs();
    std::fill(values, values + n_corners * table, 0.0);
    parallel((n_corners + SOLVED_CORNERS - 1) / SOLVED_CORNERS, n_threads, [&](auto next) {
        CornerWalk walk(forest);
        CornerTerms terms(forest.n_outputs());
        CornerGame game(link);
        std::vector<double> margin(forest.n_outputs());
        for (size_t unit; next(unit);)
            for (size_t i = unit * SOLVED_CORNERS; i < std::min(n_corners, (unit + 1) * SOLVED_CORNERS); ++i) {
                walk.collect(starts.row(pair[i]), ends.row(pair[i]), time[i], terms, margin.data());
                size_t n = terms.name_players();
                if (n > ALWAYS_ENUMERATED) n = terms.drop_players_without_effect();
                large[i] = n > MAX_TRACED ? static_cast<int64_t>(n) : 0;
                if (!large[i]) game.solve(terms, margin.data(), 1.0, values + i * table);
            }
    });
}

}  // namespace gigrad
