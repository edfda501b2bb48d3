/*
 * program.c -- the kernel's lock table, and what programs do with it; see program.h.
 */
#include "program.h"

#include "machine.h"

#include <stdlib.h>

static uint64_t below(struct programs *all, uint64_t limit)
{
    return prng_below(&all->prng, limit);
}

static struct program_file *file_at(struct programs *all, uint32_t file)
{
    if (file >= LOCKER_FILES_MAX || !all->files[file].is_open)
        world_fail(all->world, "local.h", "the server uses a file that it has not opened");
    return &all->files[file];
}

/* ---- the table ---- */

static bool meets(const struct cells *held, uint16_t cells, bool exclusive)
{
    return ((exclusive ? held->any : held->exclusive) & cells) != 0;
}

static void set(struct cells *held, uint16_t cells, enum local_mode mode)
{
    held->any &= (uint16_t)~cells;
    held->exclusive &= (uint16_t)~cells;
    if (mode != LOCAL_NONE)
        held->any |= cells;
    if (mode == LOCAL_EXCLUSIVE)
        held->exclusive |= cells;
}

/* Is a program in the way, other than this one (NULL: any)? */
static const struct local_program *obstacle(const struct programs *all,
                                            const struct local_program *self, uint32_t file,
                                            uint16_t cells, bool exclusive)
{
    for (uint32_t i = 0; i < all->count; i++)
        if (&all->at[i] != self && meets(&all->at[i].held[file], cells, exclusive))
            return &all->at[i];
    return NULL;
}

static bool try_to_take(struct programs *all, struct local_program *program,
                        const struct extent *extent)
{
    struct world *world = all->world;
    const struct program_file *file = &all->files[extent->file];
    uint16_t cells = locker_cells(extent->offset, extent->len);
    if (meets(&file->server, cells, extent->exclusive) ||
        obstacle(all, program, extent->file, cells, extent->exclusive) != NULL)
        return false;
    bool is_guarded = world->machine.is_up && all->is_mirrored && !file->is_reported &&
                      !meets(&file->stored, cells, extent->exclusive); /* else: see M2 */
    set(&program->held[extent->file], cells, extent->exclusive ? LOCAL_EXCLUSIVE : LOCAL_SHARED);
    program->unguarded[extent->file] &= (uint16_t)~cells;
    program->unguarded[extent->file] |= is_guarded ? 0 : cells;
    world_trace(world, "program %u has cells %04x of file %u %s", program->index, cells,
                extent->file, extent->exclusive ? "exclusive" : "shared");
    return true;
}

/* Less is held than before: whoever waits looks again, and has it at once. */
static void let_in(struct programs *all)
{
    for (uint32_t i = 0; i < all->count; i++) {
        struct local_program *program = &all->at[i];
        if (program->is_waiting && try_to_take(all, program, &program->wish))
            program->is_waiting = false;
    }
}

/* ---- what the server asks of the kernel ---- */

static uint16_t cells_of(struct programs *all, const struct local_range *range)
{
    uint64_t last = LOCKER_CELLS - 1;
    if (range->start > last || (range->end >= last && range->end != UINT64_MAX))
        world_fail(all->world, "local.h", "the server locks bytes that nobody asked for");
    return locker_cells(range->start, range->end == UINT64_MAX ? 0 : range->end - range->start + 1);
}

static uint32_t open_file(void *context, struct bytes fh)
{
    struct programs *all = context;
    for (uint32_t file = 0; file < all->world->lockers->plan.files; file++) {
        struct peer_nlm_bytes handle = locker_handle(file);
        if (handle.len != fh.len || memcmp(handle.at, fh.at, fh.len) != 0)
            continue;
        if (all->files[file].is_open)
            world_fail(all->world, "local.h", "the server opens file %u twice", file);
        all->files[file].is_open = true;
        return file;
    }
    return LOCAL_NO_FILE;
}

static void trace(const struct programs *all, uint32_t index)
{
    const struct cells *server = &all->files[index].server;
    world_trace(all->world,
                "the server holds cells %04x, exclusively %04x, of file %u for programs",
                server->any, server->exclusive, index);
}

static void close_file(void *context, uint32_t index)
{
    struct programs *all = context;
    struct program_file *file = file_at(all, index);
    file->server = (struct cells){0};
    file->is_open = file->is_whole = false;
    trace(all, index);
    let_in(all);
}

static uint32_t piece_count(const struct cells *held)
{
    uint32_t count = 0, before = 0;
    for (uint32_t cell = 0; cell < LOCKER_CELLS; cell++) {
        uint32_t mode = (held->any >> cell & 1U) + (held->exclusive >> cell & 1U);
        count += mode != 0 && mode != before;
        before = mode;
    }
    return count;
}

static bool raise_bytes(void *context, uint32_t index, const struct local_range *range)
{
    struct programs *all = context;
    struct program_file *file = file_at(all, index);
    uint16_t cells = cells_of(all, range);
    bool exclusive = range->mode == LOCAL_EXCLUSIVE;
    cells &= (uint16_t) ~(exclusive ? file->server.exclusive : file->server.any);
    if (cells == 0)
        return true;
    bool is_whole = all->world->plan.has_few_pieces && piece_count(&file->server) >= PROGRAM_FEW;
    if (is_whole) {
        cells = UINT16_MAX;
        exclusive = true;
    }
    if (obstacle(all, NULL, index, cells, exclusive) != NULL)
        return false;
    set(&file->server, cells, exclusive ? LOCAL_EXCLUSIVE : LOCAL_SHARED);
    file->is_whole = is_whole;
    trace(all, index);
    return true;
}

static bool lower_bytes(void *context, uint32_t index, const struct local_range *range)
{
    struct programs *all = context;
    struct program_file *file = file_at(all, index);
    uint16_t cells = cells_of(all, range);
    if (file->is_whole)
        return false;
    if (range->mode == LOCAL_NONE)
        set(&file->server, cells, LOCAL_NONE);
    if (range->mode == LOCAL_SHARED)
        file->server.exclusive &= (uint16_t)~cells;
    trace(all, index);
    let_in(all);
    return true;
}

static void refine(void *context, uint32_t index)
{
    file_at(context, index)->is_whole = false;
}

static bool find_program(void *context, struct bytes fh, const struct local_range *range,
                         struct local_holder *ret)
{
    struct programs *all = context;
    uint32_t file = 0;
    for (; file < all->world->lockers->plan.files; file++) {
        struct peer_nlm_bytes handle = locker_handle(file);
        if (handle.len == fh.len && memcmp(handle.at, fh.at, fh.len) == 0)
            break;
    }
    if (file == all->world->lockers->plan.files)
        return false;
    uint16_t cells = cells_of(all, range);
    bool exclusive = range->mode == LOCAL_EXCLUSIVE;
    const struct local_program *found = obstacle(all, NULL, file, cells, exclusive);
    if (found == NULL)
        return false;
    uint16_t theirs = (exclusive ? found->held[file].any : found->held[file].exclusive) & cells;
    uint64_t start = 0;
    while ((theirs >> start & 1) == 0)
        start++;
    *ret = (struct local_holder){
        {start, start == LOCKER_CELLS - 1 ? UINT64_MAX : start,
         found->held[file].exclusive >> start & 1 ? LOCAL_EXCLUSIVE : LOCAL_SHARED},
        PROGRAM_PID + found->index};
    return true;
}

/* ---- lives of the server ---- */

void program_boot(struct world *world)
{
    struct programs *all = world->programs;
    if (all == NULL)
        return;
    all->is_mirrored = world->is_manual || world->is_calm || below(all, 100) >= 15;
    program_stored(world);
    if (all->is_mirrored) {
        core_mirror(world->machine.core, &all->kernel);
        return;
    }
    world_trace(world, "this run has --local-locks off");
    for (uint32_t i = 0; i < all->count; i++) /* it grants what they have */
        for (uint32_t file = 0; file < LOCKER_FILES_MAX; file++)
            all->at[i].unguarded[file] = all->at[i].held[file].any;
}

void program_crash(struct world *world)
{
    struct programs *all = world->programs;
    if (all == NULL)
        return;
    for (uint32_t file = 0; file < LOCKER_FILES_MAX; file++)
        all->files[file] = (struct program_file){.stored = all->files[file].stored};
    let_in(all);
}

/* ---- what programs do ---- */

bool program_takes(struct world *world, struct local_program *program, const struct extent *extent,
                   bool waits)
{
    struct programs *all = world->programs;
    bool is_taken = try_to_take(all, program, extent);
    if (is_taken)
        let_in(all); /* it may have become weaker */
    program->is_waiting = !is_taken && waits;
    program->wish = *extent;
    program_check(world);
    return is_taken;
}

void program_gives_back(struct world *world, struct local_program *program,
                        const struct extent *extent)
{
    uint16_t cells = locker_cells(extent->offset, extent->len);
    set(&program->held[extent->file], cells, LOCAL_NONE);
    program->unguarded[extent->file] &= (uint16_t)~cells;
    let_in(world->programs);
    program_check(world);
}

void program_loses_file(struct world *world, uint32_t file)
{
    struct programs *all = world->programs;
    for (uint32_t i = 0; all != NULL && i < all->count; i++) {
        all->at[i].held[file] = (struct cells){0};
        all->at[i].unguarded[file] = 0;
        all->at[i].is_waiting &= all->at[i].wish.file != file;
    }
}

static void set_timer(struct world *world, struct local_program *program, uint64_t delay_ns)
{
    queue_add(&world->queue, world->now_ns + 1 + delay_ns, QUEUE_PROGRAM, NULL,
              (uint64_t)program->index << 32 | ++program->timer);
}

static void end(struct world *world, struct local_program *program)
{
    world_trace(world, "program %u ends", program->index);
    program->is_waiting = false;
    for (uint32_t file = 0; file < LOCKER_FILES_MAX; file++)
        program_gives_back(world, program, &(struct extent){.file = file});
}

static struct extent choose(struct world *world)
{
    struct programs *all = world->programs;
    const struct locker_plan *plan = &world->lockers->plan;
    struct extent extent = {.file = (uint32_t)below(all, plan->files),
                            .offset = below(all, plan->span),
                            .len = 1 + below(all, 4),
                            .exclusive = below(all, 100) < plan->exclusive};
    if (extent.offset + extent.len >= LOCKER_CELLS || below(all, 100) < 5)
        extent.len = 0;
    return extent;
}

void program_act(struct world *world, uint64_t ticket)
{
    struct programs *all = world->programs;
    struct local_program *program = &all->at[ticket >> 32];
    if ((uint32_t)ticket != program->timer)
        return;
    if (world->is_calm) {
        end(world, program);
        return;
    }
    struct extent extent = choose(world);
    uint64_t dice = below(all, 100);
    if (dice < 8)
        end(world, program);
    else if (program->is_waiting)
        program->is_waiting = dice < 70;
    else if (dice < 45)
        program_gives_back(world, program,
                           dice < 25 ? &(struct extent){.file = extent.file} : &extent);
    else
        (void)program_takes(world, program, &extent, dice < 80);
    set_timer(world, program, below(all, all->think_max_ns));
}

void program_be_calm(struct world *world)
{
    struct programs *all = world->programs;
    for (uint32_t i = 0; all != NULL && i < all->count; i++) {
        all->at[i].is_waiting = false;
        set_timer(world, &all->at[i], below(all, 20 * SECOND));
    }
}

void program_init(struct world *world)
{
    if (!world->plan.has_programs)
        return;
    struct programs *all = world->programs = calloc(1, sizeof *all);
    if (all == NULL)
        abort();
    all->world = world;
    all->prng.state = world->options.seed * UINT64_C(0xd6e8feb86659fd93) + 17;
    all->count = 1 + (uint32_t)below(all, PROGRAM_MAX);
    all->think_max_ns = (50 + below(all, 4000)) * MILLISECOND;
    all->kernel = (struct local_locks){.open = open_file,
                                       .close = close_file,
                                       .raise = raise_bytes,
                                       .lower = lower_bytes,
                                       .refine = refine,
                                       .find = find_program,
                                       .context = all};
    for (uint32_t i = 0; i < all->count; i++) {
        all->at[i].index = i;
        if (!world->is_manual)
            set_timer(world, &all->at[i], below(all, all->think_max_ns));
    }
}

void program_done(struct world *world)
{
    free(world->programs);
    world->programs = NULL;
}
