/* The compact PhyGNN encoder (network.GraphEncoder, network.CompactLayer), forward and backward, for one thread.

   Compiled for one width W (a multiple of 16) by compact_kernel.py. Arrays are row by row, float; weights are laid out as torch
   keeps them, (outputs, inputs). Products go through `product` and `outer`, whose sums live in registers; edges are
   handled in tiles that stay in the first cache, and their states are computed again on the way back, not stored. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifndef W
#define W 32
#endif
#define LANES 16
#define NV (W / LANES) /* vectors in a row */
#define RB (16 / NV)   /* rows whose sums fit into the registers */
#define TILE 64        /* edges at once; a multiple of LANES */
#define TYPE_WIDTH 32
#define MOST_LAYERS 16
#define MOST_FEATURES 64
#define MOST_TYPES 8

typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int bits __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

typedef struct {
    float *own_w, *own_b, *sent_w, *kind, *out_w, *out_b, *force_w, *force_b;
    float *first_w, *first_b, *second_w, *second_b, *edge_w, *edge_scale;
} Layer;

typedef struct {
    float *node_type, *one_w, *one_b, *two_w, *two_b;
    Layer layer[MOST_LAYERS];
} Weights;

/* n receivers come first among the nodes; edge may be null; gates: 0 both, 1 without attraction, 2 without repulsion. */
typedef struct {
    long layers, features, types, edge_features, gates, n, nodes, edges;
    const float *x;
    const long long *type, *receiver, *sender;
    const float *edge;
} Task;

/* What a layer keeps for the way back: own and received (n, W), the others (nodes, W). */
typedef struct {
    float *h, *own, *sent, *received, *hidden, *change;
} Kept;

static inline vec load(const float *p) { return *(const vec *)p; }
static inline void store(float *p, vec v) { *(vec *)p = v; }
static inline vec all(float v) { return v - (vec){}; }
static inline vec where_positive(vec v, vec d) { return (vec)((bits)(v > 0) & (bits)d); } /* d where v > 0, else 0 */
static inline vec positive(vec v) { return where_positive(v, v); }
static inline long least(long a, long b) { return a < b ? a : b; }

/* y (rows, W) = x (rows, K; `ld` apart) wt (K, W) + bias, or + y where there is no bias; then relu if asked for. */
static void product(long rows, long K, const float *x, long ld, const float *wt, const float *bias, float *y, int relu) {
    for (long r = 0; r < rows; r += RB) {
        const float *p[RB];
        float *q[RB];
        vec sum[RB][NV];
#pragma GCC unroll 16
        for (int i = 0; i < RB; i++) {
            const long row = least(r + i, rows - 1);
            p[i] = x + row * ld;
            q[i] = y + row * W;
#pragma GCC unroll 4
            for (int v = 0; v < NV; v++) sum[i][v] = load((bias ? bias : q[i]) + v * LANES);
        }
        for (long k = 0; k < K; k++) {
            vec w[NV];
#pragma GCC unroll 4
            for (int v = 0; v < NV; v++) w[v] = load(wt + k * W + v * LANES);
#pragma GCC unroll 16
            for (int i = 0; i < RB; i++) {
                const vec a = all(p[i][k]);
#pragma GCC unroll 4
                for (int v = 0; v < NV; v++) sum[i][v] += a * w[v];
            }
        }
#pragma GCC unroll 16
        for (int i = 0; i < RB; i++)
#pragma GCC unroll 4
            for (int v = 0; v < NV; v++) store(q[i] + v * LANES, relu ? positive(sum[i][v]) : sum[i][v]);
    }
}

/* grad (K, W) += x^T (K, rows) dy (rows, W). */
static void outer(long rows, long K, const float *x, long ld, const float *dy, float *grad) {
    for (long first = 0; first < rows; first += TILE) {
        const long end = least(first + TILE, rows);
        for (long k = 0; k < K; k += RB) {
            vec sum[RB][NV];
            long column[RB];
#pragma GCC unroll 16
            for (int i = 0; i < RB; i++) {
                column[i] = least(k + i, K - 1);
#pragma GCC unroll 4
                for (int v = 0; v < NV; v++) sum[i][v] = load(grad + column[i] * W + v * LANES);
            }
            for (long r = first; r < end; r++) {
                vec d[NV];
#pragma GCC unroll 4
                for (int v = 0; v < NV; v++) d[v] = load(dy + r * W + v * LANES);
#pragma GCC unroll 16
                for (int i = 0; i < RB; i++) {
                    const vec a = all(x[r * ld + column[i]]);
#pragma GCC unroll 4
                    for (int v = 0; v < NV; v++) sum[i][v] += a * d[v];
                }
            }
            for (int i = 0; i < RB && k + i < K; i++)
                for (int v = 0; v < NV; v++) store(grad + (k + i) * W + v * LANES, sum[i][v]);
        }
    }
}

/* sum (W) += the rows of y. */
static void add_rows(long rows, const float *y, float *sum) {
    vec s[NV];
    for (int v = 0; v < NV; v++) s[v] = load(sum + v * LANES);
    for (long r = 0; r < rows; r++)
        for (int v = 0; v < NV; v++) s[v] += load(y + r * W + v * LANES);
    for (int v = 0; v < NV; v++) store(sum + v * LANES, s[v]);
}

/* wt (K, W) = w^T, w (W, K; `ld` apart). */
static void turn(const float *w, long K, long ld, float *wt) {
    for (long o = 0; o < W; o++)
        for (long k = 0; k < K; k++) wt[k * W + o] = w[o * ld + k];
}

/* g (W, K; `ld` apart) += gt^T, gt (K, W). */
static void add_turned(const float *gt, long K, long ld, float *g) {
    for (long o = 0; o < W; o++)
        for (long k = 0; k < K; k++) g[o * ld + k] += gt[k * W + o];
}

/* d (rows, W) where y > 0, else 0. */
static void mask(long rows, const float *y, const float *d, float *out) {
    for (long r = 0; r < rows * NV; r++) {
        const vec v = load(y + r * LANES), g = load(d + r * LANES);
        store(out + r * LANES, where_positive(v, g));
    }
}

/* --- edges ------------------------------------------------------------------------------------------------------- */

typedef struct {
    float out_t[W * W], force_t[W * LANES], force_b[LANES]; /* of attraction, repulsion, strength; the other lanes are 0 */
    float edge_t[MOST_TYPES][MOST_FEATURES * W];            /* per kind: W_e (1 + k_kind), turned */
} Ready;

typedef struct {
    float z[TILE * W], f[TILE * W], gate[TILE];
    float attraction[TILE], repulsion[TILE], strength[TILE], slope[TILE]; /* gates, S and its derivative */
} Edges;

static void make_ready(const Task *task, const Layer *w, Ready *ready) {
    turn(w->out_w, W, W, ready->out_t);
    memset(ready->force_t, 0, sizeof ready->force_t);
    memset(ready->force_b, 0, sizeof ready->force_b);
    for (int o = 0; o < 3; o++) {
        ready->force_b[o] = w->force_b[o];
        for (int k = 0; k < W; k++) ready->force_t[k * LANES + o] = w->force_w[o * W + k];
    }
    const long K = task->edge ? task->edge_features : 0;
    for (long t = 0; K && t < task->types; t++)
        for (long k = 0; k < K; k++)
            for (int o = 0; o < W; o++)
                ready->edge_t[t][k * W + o] = w->edge_w[o * K + k] * (1.0f + w->edge_scale[t * K + k]);
}

/* y (TILE, LANES) of f (TILE, W): the three numbers that make the force of an edge. */
static void narrow(long rows, const float *f, const Ready *ready, float *y) {
    for (long r = 0; r < rows; r += LANES) {
        vec sum[LANES];
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++) sum[i] = load(ready->force_b);
        for (long k = 0; k < W; k++) {
            const vec w = load(ready->force_t + k * LANES);
#pragma GCC unroll 16
            for (int i = 0; i < LANES; i++) sum[i] += all(f[(r + i) * W + k]) * w;
        }
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++) store(y + (r + i) * LANES, sum[i]);
    }
}

/* States of `count` edges from number `first` on: z, f, the gates and the strength. */
static void see_edges(const Task *task, const Layer *w, const Kept *kept, const Ready *ready, long first, long count, Edges *e) {
    const long K = task->edge ? task->edge_features : 0, padded = (count + LANES - 1) / LANES * LANES;
    for (long i = 0; i < count; i++) {
        const long j = task->sender[first + i];
        const float *own = kept->own + task->receiver[first + i] * W, *sent = kept->sent + j * W;
        const float *we = ready->edge_t[task->type[j]], *x = task->edge + (first + i) * K;
        vec s[NV];
        for (int v = 0; v < NV; v++) s[v] = load(own + v * LANES) + load(sent + v * LANES);
        for (long k = 0; k < K; k++)
            for (int v = 0; v < NV; v++) s[v] += all(x[k]) * load(we + k * W + v * LANES);
        for (int v = 0; v < NV; v++) store(e->z + i * W + v * LANES, positive(s[v]));
    }
    memset(e->z + count * W, 0, (padded - count) * W * sizeof(float));
    product(padded, W, e->z, W, ready->out_t, w->out_b, e->f, 1);
    float y[TILE * LANES];
    narrow(padded, e->f, ready, y);
    float a[TILE], b[TILE], s[TILE];
    for (long i = 0; i < padded; i++) a[i] = y[i * LANES], b[i] = y[i * LANES + 1], s[i] = y[i * LANES + 2];
    for (long i = 0; i < padded; i++) {
        e->attraction[i] = 1.0f / (1.0f + expf(-a[i]));
        e->repulsion[i] = 1.0f / (1.0f + expf(-b[i]));
    }
    for (long i = 0; i < padded; i++) {
        const float small = expf(-fabsf(s[i]));
        e->strength[i] = fmaxf(s[i], 0.0f) + logf(1.0f + small);
        e->slope[i] = (s[i] > 0.0f ? 1.0f : small) / (1.0f + small);
    }
    const float pull = task->gates != 1, push = task->gates != 2;
    for (long i = 0; i < padded; i++)
        e->gate[i] = e->strength[i] * (pull * e->attraction[i] - push * e->repulsion[i]);
}

static void hear(const Task *task, const Layer *w, const Kept *kept) {
    Ready ready;
    Edges e;
    make_ready(task, w, &ready);
    memset(kept->received, 0, task->n * W * sizeof(float));
    for (long first = 0; first < task->edges; first += TILE) {
        const long count = least(TILE, task->edges - first);
        see_edges(task, w, kept, &ready, first, count, &e);
        for (long i = 0; i < count; i++) {
            float *to = kept->received + task->receiver[first + i] * W;
            for (int v = 0; v < NV; v++)
                store(to + v * LANES, load(to + v * LANES) + all(e.gate[i]) * load(e.f + i * W + v * LANES));
        }
    }
}

/* From d_received (n, W) to d_own (n, W) and d_sent (nodes, W), which come as zeros, and the gradients of the layer. */
static void hear_back(
    const Task *task, const Layer *w, const Layer *g, const Kept *kept, const float *d_received, float *d_own, float *d_sent
) {
    Ready ready;
    Edges e;
    make_ready(task, w, &ready);
    const long K = task->edge ? task->edge_features : 0;
    float out_gt[W * W] = {0}, force_gt[W * LANES] = {0}, three[TILE * LANES] = {0}, dot[TILE], df[TILE * W], dz[TILE * W];
    float(*edge_gt)[MOST_FEATURES * W] = calloc(MOST_TYPES, sizeof *edge_gt);
    const float pull = task->gates != 1, push = task->gates != 2, zero[W] = {0};
    for (long first = 0; first < task->edges; first += TILE) {
        const long count = least(TILE, task->edges - first);
        see_edges(task, w, kept, &ready, first, count, &e);
        for (long i = 0; i < count; i++) {
            const float *d = d_received + task->receiver[first + i] * W;
            vec sum = {};
            for (int v = 0; v < NV; v++) {
                const vec dv = load(d + v * LANES);
                store(df + i * W + v * LANES, all(e.gate[i]) * dv);
                sum += load(e.f + i * W + v * LANES) * dv;
            }
            float total = 0.0f;
            for (int l = 0; l < LANES; l++) total += sum[l];
            dot[i] = total;
        }
        for (long i = 0; i < count; i++) {
            const float a = e.attraction[i], b = e.repulsion[i], force = dot[i] * e.strength[i];
            three[i * LANES] = pull * force * a * (1.0f - a);
            three[i * LANES + 1] = -push * force * b * (1.0f - b);
            three[i * LANES + 2] = dot[i] * (pull * a - push * b) * e.slope[i];
        }
        for (long i = 0; i < count; i++)
            for (int v = 0; v < NV; v++) {
                vec s = load(df + i * W + v * LANES);
                for (int o = 0; o < 3; o++) s += all(three[i * LANES + o]) * load(w->force_w + o * W + v * LANES);
                store(df + i * W + v * LANES, where_positive(load(e.f + i * W + v * LANES), s));
            }
        for (long k = 0; k < W; k += LANES) { /* force_gt += f^T three */
            vec sum[LANES];
#pragma GCC unroll 16
            for (int l = 0; l < LANES; l++) sum[l] = load(force_gt + (k + l) * LANES);
            for (long i = 0; i < count; i++) {
                const vec t = load(three + i * LANES);
#pragma GCC unroll 16
                for (int l = 0; l < LANES; l++) sum[l] += all(e.f[i * W + k + l]) * t;
            }
#pragma GCC unroll 16
            for (int l = 0; l < LANES; l++) store(force_gt + (k + l) * LANES, sum[l]);
        }
        for (long i = 0; i < count; i++)
            for (int o = 0; o < 3; o++) g->force_b[o] += three[i * LANES + o];
        outer(count, W, e.z, W, df, out_gt);
        add_rows(count, df, g->out_b);
        product(count, W, df, W, w->out_w, zero, dz, 0);
        mask(count, e.z, dz, dz);
        for (long i = 0; i < count; i++) {
            const long j = task->sender[first + i];
            float *own = d_own + task->receiver[first + i] * W, *sent = d_sent + j * W;
            for (int v = 0; v < NV; v++) {
                const vec d = load(dz + i * W + v * LANES);
                store(own + v * LANES, load(own + v * LANES) + d);
                store(sent + v * LANES, load(sent + v * LANES) + d);
                float *into = edge_gt[task->type[j]] + v * LANES;
                for (long k = 0; k < K; k++)
                    store(into + k * W, load(into + k * W) + all(task->edge[(first + i) * K + k]) * d);
            }
        }
    }
    add_turned(out_gt, W, W, g->out_w);
    for (int o = 0; o < 3; o++)
        for (int k = 0; k < W; k++) g->force_w[o * W + k] += force_gt[k * LANES + o];
    for (long t = 0; K && t < task->types; t++)
        for (long k = 0; k < K; k++)
            for (int o = 0; o < W; o++) {
                const float d = edge_gt[t][k * W + o];
                g->edge_w[o * K + k] += d * (1.0f + w->edge_scale[t * K + k]);
                g->edge_scale[t * K + k] += d * w->edge_w[o * K + k];
            }
    free(edge_gt);
}

/* --- nodes ------------------------------------------------------------------------------------------------------- */

/* One round of messages: h (nodes, W) -> next (rows, W), rows = n in the last round. */
static void round_of(const Task *task, const Layer *w, const Kept *kept, long rows, float *next) {
    float wt[W * W];
    turn(w->own_w, W, W, wt);
    product(task->n, W, kept->h, W, wt, w->own_b, kept->own, 0);
    for (long m = 0; m < task->nodes; m++) memcpy(kept->sent + m * W, w->kind + task->type[m] * W, W * sizeof(float));
    turn(w->sent_w, W, W, wt);
    product(task->nodes, W, kept->h, W, wt, NULL, kept->sent, 0);
    hear(task, w, kept);
    turn(w->first_w, W, 2 * W, wt);
    product(rows, W, kept->h, W, wt, w->first_b, kept->hidden, 0);
    turn(w->first_w + W, W, 2 * W, wt);
    product(task->n, W, kept->received, W, wt, NULL, kept->hidden, 0);
    for (long r = 0; r < rows * NV; r++) store(kept->hidden + r * LANES, positive(load(kept->hidden + r * LANES)));
    turn(w->second_w, W, W, wt);
    product(rows, W, kept->hidden, W, wt, w->second_b, kept->change, 1);
    for (long r = 0; r < rows * NV; r++)
        store(next + r * LANES, load(kept->h + r * LANES) + load(kept->change + r * LANES));
}

/* d (nodes, W), of which `rows` are filled: from the states after the round to those before. scratch: 4 (nodes, W). */
static void round_back(
    const Task *task, const Layer *w, const Layer *g, const Kept *kept, long rows, float *d, float *scratch
) {
    const long n = task->n, nodes = task->nodes;
    const float zero[W] = {0};
    float gt[W * W], back[W * W];
    float *d_change = scratch, *d_hidden = scratch + nodes * W, *d_own = d_change, *d_sent = scratch + 2 * nodes * W;
    float *d_received = scratch + 3 * nodes * W;
    mask(rows, kept->change, d, d_change);
    memset(gt, 0, sizeof gt);
    outer(rows, W, kept->hidden, W, d_change, gt);
    add_turned(gt, W, W, g->second_w);
    add_rows(rows, d_change, g->second_b);
    product(rows, W, d_change, W, w->second_w, zero, d_hidden, 0);
    mask(rows, kept->hidden, d_hidden, d_hidden);
    memset(gt, 0, sizeof gt);
    outer(rows, W, kept->h, W, d_hidden, gt);
    add_turned(gt, W, 2 * W, g->first_w);
    memset(gt, 0, sizeof gt);
    outer(n, W, kept->received, W, d_hidden, gt);
    add_turned(gt, W, 2 * W, g->first_w + W);
    add_rows(rows, d_hidden, g->first_b);
    memset(d + rows * W, 0, (nodes - rows) * W * sizeof(float));
    for (int o = 0; o < W; o++) memcpy(back + o * W, w->first_w + o * 2 * W, W * sizeof(float));
    product(rows, W, d_hidden, W, back, NULL, d, 0);
    for (int o = 0; o < W; o++) memcpy(back + o * W, w->first_w + o * 2 * W + W, W * sizeof(float));
    product(n, W, d_hidden, W, back, zero, d_received, 0);
    memset(d_own, 0, n * W * sizeof(float));
    memset(d_sent, 0, nodes * W * sizeof(float));
    hear_back(task, w, g, kept, d_received, d_own, d_sent);
    memset(gt, 0, sizeof gt);
    outer(n, W, kept->h, W, d_own, gt);
    add_turned(gt, W, W, g->own_w);
    add_rows(n, d_own, g->own_b);
    product(n, W, d_own, W, w->own_w, NULL, d, 0);
    memset(gt, 0, sizeof gt);
    outer(nodes, W, kept->h, W, d_sent, gt);
    add_turned(gt, W, W, g->sent_w);
    for (long m = 0; m < nodes; m++) add_rows(1, d_sent + m * W, g->kind + task->type[m] * W);
    product(nodes, W, d_sent, W, w->sent_w, NULL, d, 0);
}

/* Where a layer keeps what: five (nodes, W) after the two of the first states, own and received included. */
static Kept kept_of(const Task *task, long layer, float *space) {
    const long size = task->nodes * W;
    float *at = space + size + layer * 6 * size;
    return (Kept){at, at + size, at + 2 * size, at + 3 * size, at + 4 * size, at + 5 * size};
}

long space_floats(const Task *task) { return task->nodes * W * (1 + 6 * task->layers); }
long scratch_floats(const Task *task) { return task->nodes * W * 5; }

/* out (n, W): the embeddings of the receivers. space: as many floats as `space_floats` says, kept for `backward`. */
void forward(const Task *task, const Weights *w, float *space, float *out) {
    const long K = task->features + TYPE_WIDTH, nodes = task->nodes;
    float wt[(MOST_FEATURES + TYPE_WIDTH) * W], table[MOST_TYPES * W];
    float *first = space;
    turn(w->one_w, K, K, wt);
    product(task->types, TYPE_WIDTH, w->node_type, TYPE_WIDTH, wt + task->features * W, w->one_b, table, 0);
    for (long m = 0; m < nodes; m++) memcpy(first + m * W, table + task->type[m] * W, W * sizeof(float));
    product(nodes, task->features, task->x, task->features, wt, NULL, first, 1);
    turn(w->two_w, W, W, wt);
    product(nodes, W, first, W, wt, w->two_b, kept_of(task, 0, space).h, 1);
    for (long layer = 0; layer < task->layers; layer++) {
        const int last = layer == task->layers - 1;
        const Kept kept = kept_of(task, layer, space);
        float *next = last ? out : kept_of(task, layer + 1, space).h;
        round_of(task, &w->layer[layer], &kept, last ? task->n : nodes, next);
    }
}

/* Adds to the gradients g what d_out (n, W) asks for. space: as `forward` left it; scratch: `scratch_floats`. */
void backward(const Task *task, const Weights *w, const Weights *g, float *space, const float *d_out, float *scratch) {
    const long K = task->features + TYPE_WIDTH, nodes = task->nodes;
    const float zero[W] = {0};
    float *d = scratch, *rest = scratch + nodes * W, *first = space;
    memcpy(d, d_out, task->n * W * sizeof(float));
    for (long layer = task->layers - 1; layer >= 0; layer--) {
        const Kept kept = kept_of(task, layer, space);
        round_back(task, &w->layer[layer], &g->layer[layer], &kept, layer == task->layers - 1 ? task->n : nodes, d, rest);
    }
    float gt[(MOST_FEATURES + TYPE_WIDTH) * W], table[MOST_TYPES * W] = {0};
    mask(nodes, kept_of(task, 0, space).h, d, d);
    memset(gt, 0, W * W * sizeof(float));
    outer(nodes, W, first, W, d, gt);
    add_turned(gt, W, W, g->two_w);
    add_rows(nodes, d, g->two_b);
    product(nodes, W, d, W, w->two_w, zero, rest, 0);
    mask(nodes, first, rest, rest);
    memset(gt, 0, sizeof gt);
    outer(nodes, task->features, task->x, task->features, rest, gt);
    add_rows(nodes, rest, g->one_b);
    for (long m = 0; m < nodes; m++) add_rows(1, rest + m * W, table + task->type[m] * W);
    outer(task->types, TYPE_WIDTH, w->node_type, TYPE_WIDTH, table, gt + task->features * W);
    add_turned(gt, K, K, g->one_w);
    for (long t = 0; t < task->types; t++)
        for (int k = 0; k < TYPE_WIDTH; k++)
            for (int o = 0; o < W; o++) g->node_type[t * TYPE_WIDTH + k] += table[t * W + o] * w->one_w[o * K + task->features + k];
}
