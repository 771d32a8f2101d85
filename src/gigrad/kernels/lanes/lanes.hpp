// What the vector walks and the rest of the kernel share: plain data, nothing that a compiler would emit twice.
//
// A vector walk takes many pairs through a tree side by side, one in each 16-bit lane. It works on *codes* of crossing
// times: about twelve bits of time and four bits that say which turn of the way it was. Codes decide only what is beyond
// doubt. Wherever two times are too close for their codes, the lane is handed to the exact walk in float64, so that no
// answer depends on how times are rounded here.
#pragma once

#include <cstddef>

#include "core/node.hpp"
#include "sweep/sweep.hpp"
#include "limits.hpp"

namespace gigrad {

// Time runs backwards, from the end (0) to the start (1), because u / (e - s) with u = e - threshold needs one product
// once 1 / (e - s) is known. A time r has the code 16 * round(CODE_UNIT * r) + CODE_ORIGIN + turn. Rounding in float32
// moves it by less than half a unit, so codes CODE_DOUBT apart are in order and far from a tie.
constexpr float CODE_UNIT = 4000.0f;
constexpr int16_t CODE_ORIGIN = -32000;
constexpr int16_t CODE_DOUBT = 32;
constexpr int16_t CODE_NEVER = 0x7fff;  // a split that is not crossed
constexpr int16_t TURN_MASK = 15;
constexpr int16_t TURN_DOUBT = 15;                      // two turns too close to tell apart
constexpr int16_t TURN_NONE = 14;                       // the path's own end
constexpr int16_t CODE_END = -32768 + TURN_NONE;        // before every crossing
constexpr int16_t CODE_START = 0x7fc0 + TURN_NONE;      // after every crossing
constexpr int16_t CODE_HALF = CODE_ORIGIN + 16 * 2000;  // r = 1/2, without its turn
constexpr int16_t TURN_AT_ONCE = 13;                    // all turns at one half of columns without values between
constexpr int16_t CODE_AT_ONCE = CODE_HALF + TURN_AT_ONCE;
constexpr int MAX_TURNS = 13;                    // deeper nodes go to the exact walk
constexpr int MAX_VECTORS = 64;                  // of a block: one bit of a word for each
constexpr int SLOT_CODES = 2 * MAX_VECTORS + 6;  // vectors of codes that the walk keeps for each level

// One column of a block. Pairs are lanes; lane l of vector v of row r (all pairs of a row share their end) is start
// v * LANES + l. Without shared ends there is one row.
struct LaneColumn {
    bool ready;
    bool rough;            // a difference e - s is too small or too large for float32: only the exact walk will do
    const double* sorted;  // the distinct values in the block's rows, in order
    int32_t n_sorted;
    const int16_t* last_left;      // by split: the last place in `sorted` that goes left; null: to be searched for
    const int16_t* start_rank[2];  // place of each start's value in `sorted`; NaN on the side [missing_left]
    const int16_t* end_rank[2];    // the same of ends; null where ends are shared
    const int16_t* jumps;          // -1 for lanes that change at one half; null when there is none
    const float* inverse;          // CODE_UNIT / (e - s), by row, in the order that Isa::times takes
    const double* ends;            // by lane; null where ends are shared
};

struct LaneWalkJob;

// Lanes (bits) of a vector.
struct LaneSet {
    int vector;
    uint32_t lanes;
};

// Callbacks of the vector walk to the portable code.
struct LaneCalls {
    void (*column)(LaneWalkJob&, int32_t feature);
    // Sides of a category split, 0 left and 1 right: of starts (one row of them), and of ends (by row where shared).
    void (*category)(LaneWalkJob&, const Node& node, int16_t* start_sides, int16_t* end_sides);
    // Lanes that reach a leaf, or a node not to be walked here, ambiguously by codes; vectors ascend.
    void (*exact)(LaneWalkJob&, int32_t node, int depth, const LaneSet* sets, int n_sets);
    // Grow the list of visits of a lane, and that of its corners.
    void (*grow)(LaneWalkJob&, size_t lane);
    void (*grow_corners)(LaneWalkJob&, size_t lane);
    // The number of a leaf with the values from `value` on, which several variables open or close at one half:
    // `members`, first those past, then those before. For as many lanes as do so.
    uint32_t (*corner)(LaneWalkJob&, int32_t value, const int32_t* members, uint32_t n_past, uint32_t n_before);
};

// Where a leaf's numbers begin, and its tree; where every leaf has one number for the only output, that number: the
// values of a large forest are too scattered to be loaded one by one.
union VisitValue {
    double number;
    struct {
        int32_t value, tree;
    } place;
};

// A leaf that a pair's path passes: the splits that open and close it (`no_split`: the path's own end, or told
// elsewhere), and its contribution.
struct Visit {
    int32_t opens, closes;
    VisitValue gives;
};

// The lists of one pair while they grow: its visits, and the numbers of the leaves that it passes at corners.
struct Visits {
    Visit *next, *end;
};
struct CornerNumbers {
    uint32_t *next, *end;
};

struct LaneWalkJob {
    LaneCalls calls;
    void* owner;
    const Node* nodes;
    LaneColumn* columns;
    int n_rows;          // rows of ends; 1 where ends are not shared
    int row_vectors;     // vectors of a row
    const double* ends;  // shared: n_rows x end_step
    size_t end_step;
    const int16_t* first_code;  // by start: CODE_END, or CODE_NEVER for lanes without a pair
    int16_t* state;             // (MAX_TURNS + 2) x SLOT_CODES x LANES codes
    Turn path[MAX_TURNS];       // the way to the node that `calls.exact` is about

    size_t n_trees;
    void (*between_trees)();             // may throw: a call that is interrupted
    const int32_t *roots, *tree_output;  // tree_output -1: a leaf has a number for every output

    // Where the credit goes: `credit` + row (or pair) * credit_step, (columns, outputs).
    double* credit;
    size_t credit_step;
    size_t nobody;  // of pairs: a dummy entry of each table for the path's own ends
    const double* values;
    size_t outputs;
    size_t first, width;        // of the outputs that the present tree adds to
    const double* weight_sums;  // (row_vectors, LANES / 8, 256): sums of weights by bits; null: all are `weight`
    double weight;
    bool at_once;          // whether any pair of the block may cross a split at one half
    const Shares* shares;  // (2, 16, 16): at one corner or not; variables that open; variables that close

    // The lists of visits and of corners, where jumps are needed: one for each lane, in any order.
    Visits* visits;
    CornerNumbers* corners;
    const int32_t* split_ids;  // by node
    int32_t no_split;
    int32_t tree;  // the present one
};

// A branch on the path to an ambiguous leaf, for one end.
struct LeafTurn {
    const double* starts;  // the column
    double threshold, place, end;
    double low, high;  // starts from low to high are the stored threshold: they cross at 0. None where low > high
    bool end_stored;   // the end is: all cross at 1, or at one half where both ends are
    const Node* node;
    bool from_left;  // starts that go left cross it
    bool plain;      // a numeric split of a column without jumps: the general rules have nothing to add
    double mass;     // weight of the starts for which it opens or closes the leaf, by their shares
};

// A column that a leaf multiplies, for one end.
struct LeafColumn {
    const double* from;  // the starts' numbers
    double to, factor;
    double mass[4];  // sum over starts of weight times the way that the column goes inside the leaf, in parts
};

// All of its turns are plain.
struct LeafShares {
    LeafTurn *opening, *closing;  // to the end's side, and the others
    int n_opening, n_closing;
    bool repeats;           // a variable has two splits
    const int32_t* starts;  // those in doubt
    size_t n;
    const double* weights;  // of all starts
    const Shares* shares;   // (2, 16, 16): at one corner or not; variables that open; variables that close
    // The leaf is linear, `constant` + sum of factor times column: masses are then multiplied by its value where it is
    // entered or left. Otherwise the value counts as 1.
    bool line;
    LeafColumn* columns;
    int n_columns;
    double constant;
};

// The ambiguous leaves of a swept pair, for trees with one output.
// The path to a leaf: its tests from the last to the first, then none; and bits for branches to the left.
struct SweepWay {
    uint16_t test[SWEEP_CORNER_DEPTH], left;
};
struct SweepCorners {
    const int32_t* leaves;  // their places
    size_t n;
    const SweepWay* ways;   // of all leaves
    const int32_t* way_of;  // by place
    const int16_t* codes;   // as in SweepJob
    const double* times;    // by test: exact times of those that are crossed; unspecified for the others, and for none
    const int32_t* variable_of;  // by test, and of none
    const VisitValue* gives;     // by place
    size_t depth;                // of the trees
    const Shares* shares;        // as in LeafShares
    double weight;
    double* credit;  // (columns,), to be added to
    int32_t* odd;    // leaves handled elsewhere: a variable has two splits on the path; room for all and one more
    size_t n_odd;
};

struct LaneKernel {
    const char* name;
    int lanes;
    void (*population)(LaneWalkJob&);  // all trees, shared ends, credit summed over starts
    void (*pairs)(LaneWalkJob&);       // all trees, credit of each pair
    void (*population_lines)(
        LaneWalkJob&);  // all trees, shared ends; every leaf that a path enters or leaves goes to calls.exact
    void (*population_visits)(LaneWalkJob&);
    void (*pairs_visits)(LaneWalkJob&);
    SweepWalk sweep;  // one pair, all trees
    void (*sweep_corners)(SweepCorners&);
    bool (*leaf_shares)(
        const LeafShares&);  // adds to the masses; returns false, with nothing added, if it cannot decide
};

}  // namespace gigrad
