/*
 * state.js -- what the page knows and shows, and its limits.
 *
 * `state` holds what was read last, `ui` what was chosen. The views are functions from these to a
 * description of elements (elements.js).
 *
 * Always true:
 *  (1) The number of elements is bounded, whatever is stored: lists are shown in pages, files with
 *      at most LANES_MAX rows of bars, the log with LOG_SHOWN lines.
 *  (2) At most one request of a kind is in flight, and the pause after it is at least four times as
 *      long as it took: a slow server is asked less. A page that nobody looks at asks nothing.
 *  (3) What is shown and not current says so.
 */
const ROWS_SHOWN = 50;        // rows of a list at a time
const FILES_SHOWN = 20;       // files at a time
const PATHS_MAX = 5000;       // names of files that are kept
const CONTENDED_SHOWN = 6;    // of them with somebody waiting, in full
const NAMED_MAX = 6;          // clients and waits that the overview names
const BLOCKED_MAX = 50;       // requests that are read of one client that blocks them, to name some
const LANES_MAX = 40;         // owners of a file drawn in full
const LANES_BRIEF = 6;        // where several files are shown
const BARS_MAX = 120;         // ranges drawn in one row
const UNTOLD_MAX = 100;       // clients that were not notified, read to name some
const PAGE_MAX = 1000;        // rows that the server gives at once
const LOG_MAX = 1000, LOG_SHOWN = 200;
const SAMPLES_MAX = 360;      // an hour
const POLL_MS = 2000;         // without a stream
const NOTE_MS = 4000;         // a stream that comes back sooner was not worth a word
const LOOK_MS = 5000;         // with one: ages and counters move without events
const SETTLE_MS = 250;        // events that come together are answered together
const PATIENCE_MS = 10000;    // for one request

const state = {
    skewMs: 0,                // how far the server's clock is ahead of ours
    heardMs: Date.now(),      // when the stream last said something
    lastEvent: '0',           // its id; at first everything that the server has kept is new
    link: 'new',              // live, polling, gone
    answeredMs: 0,            // when the server last answered
    status: null, statusMs: 0, starting: '', notReady: '',
    epochSeen: null, graceWas: false, graceMax: 0, graceEndedMs: 0, missing: new Map(),
    troublesSaid: new Map(),  // key to title
    absent: [],               // clients that crashed or were given up
    blocked: new Map(),       // some of the requests that each of the worst blockers blocks
    unnotified: [],           // clients that could not be told of our restart, the worst of them
    untold: 0,                // how many are still to be told
    client: null, clientAsked: '', clientError: '',
    clientLocks: [], clientLocksNext: null, clientWaiters: [], clientBlocks: [],
    clientBlocksMore: false,
    pages: [null], locks: [], locksNext: null, lockPage: 0, locksMs: 0, locksError: '',
    locksAsked: null,         // what they were asked for,
    locksCursor: null,        // and from where on
    locksUnnamed: 0,          // that the search could not look at in full
    exports: [], exportsMs: 0,
    contended: [], contendedMore: 0, // files that somebody waits on
    config: [], configMs: 0,
    file: {locks: [], waiters: [], more: false},
    samples: [], samplesLast: 0, samplesMs: 0, samplesEveryMs: 10000, metricsOff: false,
    log: [], logCount: 0,
};
const ui = {
    view: 'overview', argument: '', search: '', filter: 'all', filePage: 0,
    lockSearch: '', logSearch: '', theme: 'auto', hover: null,
    sorts: {}, lockExport: '', configSearch: '', configAll: false, copied: '',
};

// It watches hosts for the lock manager of its machine and keeps no locks of its own.
function isMonitor() {
    return state.status !== null && state.status.role === 'monitor';
}

// What the parts of the page that it shares with a lock server look at, where it has nothing.
const lockless = {
    clients: 0, registrants: 0, locks: 0, offers: 0, share_reservations: 0, waiters: 0,
    grace: {active: false, remaining_seconds: 0, unsettled_locks: 0, waiting_for: [],
        waiting_for_more: false},
    blockers: [], blockers_more: false, silent_holders: [], name_conflicts: [],
};

// What hosts are notified of.
function restart() {
    return isMonitor() ? 'reboot of this machine' : 'restart';
}
