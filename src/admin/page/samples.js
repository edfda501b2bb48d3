/*
 * samples.js -- what the charts show: samples of the last hour, as the server has kept them.
 *
 * A server that starts again has none of before; what this page has read of that stays.
 */

// Per second, and in milliseconds.
function sampleOf(row) {
    const seconds = row.seconds || 1;
    const ms = value => value === null ? null : 1000 * value;
    return {
        atMs: Date.parse(row.time), lastMs: 1000 * seconds,
        nlm: row.nlm_requests / seconds, nsm: row.nsm_requests / seconds,
        nfs: row.nfs_requests / seconds,
        calls: (row.nlm_requests + row.nsm_requests + row.nfs_requests) / seconds,
        read: row.bytes_read / seconds, written: row.bytes_written / seconds,
        middle: ms(row.commit_median_seconds), high: ms(row.commit_p99_seconds),
        locks: row.locks, waiters: row.waiters,
    };
}

async function readSamples() {
    const epoch = state.epochSeen;
    state.samplesMs = Date.now();
    let said;
    try {
        said = await ask(query('samples', {after: state.samplesLast || ''}));
        state.metricsOff = false;
    } catch (error) {
        state.metricsOff = error instanceof Refused && error.status === 404;
        return;
    }
    if (epoch !== state.epochSeen)
        return; // numbers of another run
    state.samplesEveryMs = 1000 * said.interval_seconds;
    state.samplesLast = said.last;
    const rows = said.samples.map(sampleOf);
    const from = rows.length ? rows[0].atMs : Infinity;
    state.samples = [...state.samples.filter(old => old.atMs < from), ...rows]
        .slice(-SAMPLES_MAX);
}
