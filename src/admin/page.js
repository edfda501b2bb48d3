/*
 * page.js -- what page.html shows, and how it changes.
 *
 * How it works. `state` holds what was read last. The parts of the page are functions from `state`
 * to a description of elements (`h`), and `patch` makes the document look like that description,
 * touching only what differs, so that focus and scroll position stay. Data becomes text nodes and
 * attribute values, never markup.
 *
 * Always true:
 *  (1) The number of elements is bounded, whatever is stored: lists are shown in pages, files with
 *      at most LANES_MAX rows of bars, the log with LOG_SHOWN lines.
 *  (2) At most one request of a kind is in flight, and the pause after it is at least four times as
 *      long as it took: a slow server is asked less. A page that nobody looks at asks nothing.
 *  (3) What is shown and not current says so.
 */
'use strict';
(() => {

const ROWS_SHOWN = 50;        // rows of a list at a time
const FILES_SHOWN = 20;       // files at a time
const PATHS_MAX = 5000;       // names of files that are kept
const CONTENDED_SHOWN = 6;    // of them with somebody waiting, in full
const NAMED_MAX = 6;          // clients and waits that the overview names
const LANES_MAX = 40;         // owners of a file drawn in full
const LANES_BRIEF = 6;        // where several files are shown
const BARS_MAX = 120;         // ranges drawn in one row
const PAGE_MAX = 1000;        // rows that the server gives at once
const CLIENTS_MAX = 50000;    // kept for searching
const LOG_MAX = 1000, LOG_SHOWN = 200;
const SAMPLES_MIN = 30, SAMPLES_MAX = 150, SAMPLE_MS = 2000; // one to five minutes
const POLL_MS = 2000;         // without a stream
const NOTE_MS = 4000;         // a stream that comes back sooner was not worth a word
const LOOK_MS = 5000;         // with one: ages and counters move without events
const SETTLE_MS = 250;        // events that come together are answered together
const PATIENCE_MS = 10000;    // for one request

// ---- elements -------------------------------------------------------------------------------

const SVG = document.querySelector('svg').namespaceURI;
const svgTags = new Set(['svg', 'path', 'line']);

// Characters that are not seen but change what is: a name could pass for another with them.
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

// Describes an element. Strings and numbers among the children become text.
function h(tag, props, ...kids) {
    return {tag, props: props || {}, kids: kids.flat(Infinity)
        .filter(kid => kid !== null && kid !== undefined && kid !== false)
        .map(kid => typeof kid === 'object' ? kid : String(kid).replace(unseen, '\ufffd'))};
}

function onAny(event) {
    const handler = event.currentTarget.holdfast.on[event.type];
    if (handler)
        handler(event);
}

function update(node, wanted) {
    const old = node.holdfast.props, props = wanted.props;
    for (const name of Object.keys(old))
        if (!(name in props) && name !== 'on' && name !== 'style' && name !== 'key')
            node.removeAttribute(name);
    for (const [name, value] of Object.entries(props)) {
        if (name === 'key') {
            continue;
        } else if (name === 'on') {
            for (const type of Object.keys(value))
                if (!(type in node.holdfast.on))
                    node.addEventListener(type, onAny);
            node.holdfast.on = {...node.holdfast.on, ...value};
        } else if (name === 'style') {
            for (const [property, text] of Object.entries(value))
                if (!old.style || old.style[property] !== text)
                    node.style.setProperty(property, text);
        } else if (name === 'value') {
            if (node.value !== value && document.activeElement !== node)
                node.value = value;
        } else if (value === false || value === null || value === undefined) {
            node.removeAttribute(name);
        } else if (old[name] !== value) {
            node.setAttribute(name, value === true ? '' : value);
        }
    }
    node.holdfast.props = props;
    patchKids(node, wanted.kids);
}

function create(wanted) {
    const node = svgTags.has(wanted.tag) ? document.createElementNS(SVG, wanted.tag)
                                         : document.createElement(wanted.tag);
    node.holdfast = {tag: wanted.tag, key: wanted.props.key, props: {}, on: {}};
    return node;
}

function patchKids(parent, kids) {
    const byKey = new Map();
    for (const node of parent.childNodes)
        if (node.holdfast && node.holdfast.key !== undefined)
            byKey.set(node.holdfast.key, node);
    let at = parent.firstChild;
    for (const kid of kids) {
        let node;
        if (typeof kid === 'string') {
            node = at && at.nodeType === Node.TEXT_NODE ? at : document.createTextNode(kid);
            if (node.nodeValue !== kid)
                node.nodeValue = kid;
        } else {
            const key = kid.props.key;
            const known = key === undefined ? at : byKey.get(key);
            const fits = known && known.holdfast && known.holdfast.tag === kid.tag &&
                known.holdfast.key === key;
            node = fits ? known : create(kid);
            byKey.delete(key);
            update(node, kid);
        }
        if (node === at)
            at = at.nextSibling;
        else
            parent.insertBefore(node, at);
    }
    while (at) {
        const next = at.nextSibling;
        at.remove();
        at = next;
    }
}

function patch(id, ...kids) {
    patchKids(document.getElementById(id), h('div', null, kids).kids);
}

// ---- words ----------------------------------------------------------------------------------

const numbers = new Intl.NumberFormat('en-US');

function count(number) {
    return Number.isSafeInteger(number) ? numbers.format(number)
                                        : '≈' + numbers.format(number);
}

function plural(number, word) {
    return count(number) + ' ' + word + (number === 1 ? '' : 's');
}

function duration(seconds) {
    const s = Math.max(0, Math.floor(seconds));
    if (s < 60)
        return s + ' s';
    if (s < 3600)
        return Math.floor(s / 60) + ' min' + (s < 600 && s % 60 ? ' ' + s % 60 + ' s' : '');
    if (s < 86400)
        return Math.floor(s / 3600) + ' h' + (s % 3600 >= 60 ? ' ' + Math.floor(s % 3600 / 60) +
            ' min' : '');
    return Math.floor(s / 86400) + ' d' + (s % 86400 >= 3600 ? ' ' +
        Math.floor(s % 86400 / 3600) + ' h' : '');
}

// By the server's clock. Ages stop with the last answer: what came after is not known.
function now() {
    return (state.link === 'gone' ? state.answeredMs : Date.now()) + state.skewMs;
}

function ago(time) {
    if (!time)
        return 'never';
    const seconds = (now() - Date.parse(time)) / 1000;
    return seconds < 1.5 ? 'just now' : duration(seconds) + ' ago';
}

function clockOf(ms) {
    return new Date(ms).toLocaleTimeString('en-GB');
}

// Length 0 means to the end of the file.
function rangeText(row) {
    if (row.length === 0)
        return row.offset === 0 ? 'the whole file' : 'bytes ' + count(row.offset) + ' to the end';
    if (row.length === 1)
        return 'byte ' + count(row.offset);
    return 'bytes ' + count(row.offset) + '–' + count(row.offset + row.length - 1);
}

// What files are called, by their handles, as the server said last.
const paths = new Map();

function learnPaths(rows) {
    if (paths.size > PATHS_MAX)
        paths.clear();
    for (const row of Array.isArray(rows) ? rows : [])
        if (row.path)
            paths.set(row.file, row.path);
        else
            paths.delete(row.file);
}

// A file without a name is shown by its handle; as text where it is text, which those of test
// clients are.
function fileText(hex) {
    if (paths.has(hex))
        return paths.get(hex);
    const bytes = hex.replace(/(00)+$/, '').match(/../g) || [];
    const codes = bytes.map(byte => parseInt(byte, 16));
    if (codes.length > 0 && codes.every(code => code > 32 && code < 127))
        return String.fromCharCode(...codes);
    return hex.length > 40 ? hex.slice(0, 18) + '…' + hex.slice(-18) : hex;
}

function clientText(row) {
    return row.name || row.address;
}

const told = {
    none: 'nothing to send', told: 'notified', waiting: 'not reached yet', calling: 'in progress',
    given_up: 'unreachable; retried at next start',
};
// A client that came after our start already knows our state.
function toldWords(news) {
    return news.state === 'told' && news.attempts === 0 ? 'not needed' : told[news.state];
}

const clientTags = {
    given_up: 'bad', crashed: 'bad', recovering: 'warn', freeing: 'warn', active: '',
};

function isUnreached(client) {
    const news = client.notification;
    return news.state === 'given_up' ||
        ['waiting', 'calling'].includes(news.state) && news.attempts > 0;
}

function rank(client) {
    return client.crashed ? 0 : isUnreached(client) ? 1 : client.state === 'recovering' ? 2
        : client.state === 'freeing' ? 3 : client.waiters > 0 ? 4 : 5;
}

// ---- what is known --------------------------------------------------------------------------

const state = {
    skewMs: 0,                // how far the server's clock is ahead of ours
    heardMs: Date.now(),      // when the stream last said something
    link: 'new',              // live, polling, gone
    answeredMs: 0,            // when the server last answered
    status: null, statusMs: 0, starting: '', notReady: '',
    epochSeen: null, graceWas: false, graceMax: 0, graceEndedMs: 0, missing: new Map(),
    troublesSaid: new Map(),  // key to title
    absent: [],               // clients that crashed or were given up
    waiters: [], notifications: [], notificationsNext: null,
    clients: [], clientsMs: 0, clientsMore: false, clientsLoading: 0,
    client: null, clientAsked: '', clientError: '',
    clientLocks: [], clientLocksNext: null, clientWaiters: [],
    pages: [null], locks: [], locksNext: null, lockPage: 0, locksMs: 0, locksError: '',
    contended: [], contendedMore: 0, // files that somebody waits on
    file: {locks: [], waiters: [], more: false},
    samples: [], metricsOff: false, metricsLast: null,
    log: [], logCount: 0,
};
const ui = {
    view: 'overview', argument: '', search: '', filter: 'all', page: 0, filePage: 0,
    lockSearch: '', logSearch: '', theme: 'auto',
};

// ---- a status monitor (--role monitor) ------------------------------------------------------

// It watches hosts for the lock manager of its machine and keeps no locks of its own.
function isMonitor() {
    return state.status !== null && state.status.role === 'monitor';
}

// What the parts of the page that it shares with a lock server look at, where it has nothing.
const lockless = {
    clients: 0, registrants: 0, locks: 0, offers: 0, share_reservations: 0, waiters: 0,
    grace: {active: false, remaining_seconds: 0, unsettled_locks: 0, waiting_for: [],
        waiting_for_more: false},
    silent_holders: [], name_conflicts: [],
};

// What hosts are notified of.
function restart() {
    return isMonitor() ? 'reboot of this machine' : 'restart';
}

// ---- asking ---------------------------------------------------------------------------------

class Refused extends Error {
    constructor(status, said) {
        super(said.hint ? said.error + ': ' + said.hint : said.error);
        this.status = status;
        this.said = said;
    }
}

async function ask(path, wantsText) {
    const control = new AbortController();
    const timer = setTimeout(() => control.abort(), PATIENCE_MS);
    try {
        const reply = await fetch(path, {signal: control.signal, cache: 'no-store'});
        state.answeredMs = Date.now();
        if (reply.ok && wantsText)
            return await reply.text();
        if (reply.ok) {
            const said = await reply.json();
            learnPaths(said.locks);
            learnPaths(said.waiters);
            return said;
        }
        let said = {error: 'status ' + reply.status};
        try {
            said = await reply.json();
        } catch (error) { /* not ours: the number has to do */ }
        throw new Refused(reply.status, said);
    } finally {
        clearTimeout(timer);
    }
}

function query(path, parameters) {
    const text = Object.entries(parameters).filter(([, value]) => value !== null && value !== '')
        .map(([name, value]) => name + '=' + encodeURIComponent(value)).join('&');
    return '/api/v1/' + path + (text ? '?' + text : '');
}

// Something that is read again and again: never twice at a time, and the slower the less often.
class Reader {
    constructor(work, isWanted, rest = 4) {
        this.work = work;
        this.isWanted = isWanted;
        this.rest = rest; // how many times as long as the work took
        this.isBusy = false;
        this.isDue = false;
        this.isUrgent = false;
        this.freeAtMs = 0;
        this.timer = 0;
    }
    want(delayMs = 0) {
        if (this.isBusy) {
            this.isDue = true;
            return;
        }
        if (this.timer)
            return;
        this.timer = setTimeout(() => {
            this.timer = 0;
            this.run();
        }, Math.max(delayMs, this.freeAtMs - Date.now()));
    }
    // At once, because somebody looks at something else now.
    now() {
        clearTimeout(this.timer);
        this.timer = 0;
        this.freeAtMs = 0;
        this.isUrgent = this.isBusy;
        this.want();
    }
    async run() {
        if (document.hidden || !this.isWanted())
            return;
        this.isBusy = true;
        this.isDue = false;
        const begin = Date.now();
        try {
            await this.work();
        } catch (error) {
            if (!(error instanceof Refused) && error.name !== 'AbortError' &&
                !(error instanceof TypeError))
                console.error(error);
        }
        const tookMs = Date.now() - begin;
        this.freeAtMs = this.isUrgent ? 0
            : Date.now() + Math.max(SETTLE_MS, this.rest * tookMs);
        this.isBusy = this.isUrgent = false;
        draw();
        if (this.isDue)
            this.want();
    }
}

async function readStatus() {
    try {
        const [status, ready] = await Promise.all([
            ask('/api/v1/status'),
            ask('/readyz', true).then(() => '', error => error instanceof Refused
                ? String(error.said.error).replace(/^not ready: /, '') : ''),
        ]);
        state.notReady = ready;
        if (state.link === 'gone' || state.link === 'new')
            state.link = stream && stream.readyState === EventSource.OPEN ? 'live' : 'polling';
        takeStatus(status);
    } catch (error) {
        if (error instanceof Refused && error.status === 503) {
            state.starting = error.said.error;
        } else {
            if (state.link !== 'gone')
                write('bad', 'The server does not answer.');
            state.link = 'gone';
        }
    }
}

function takeStatus(said) {
    const old = state.status;
    const status = said.role === 'monitor' ? {...lockless, ...said} : said;
    const changed = !old || old.store.durable_txn !== status.store.durable_txn ||
        old.epoch !== status.epoch || old.locks !== status.locks ||
        old.waiters !== status.waiters || status.grace.unsettled_locks > 0 ||
        JSON.stringify(old.hosts) !== JSON.stringify(status.hosts);
    state.starting = '';
    state.skewMs = (Date.parse(status.time) || Date.now()) - Date.now();
    state.status = status;
    state.statusMs = Date.now();
    if (isMonitor() && ['locks', 'file'].includes(ui.view))
        ui.view = 'overview';
    notice(status);
    if (changed)
        wantLists();
}

// What the status tells that no event did: the page may have been opened in the middle of it, or
// the stream may have been lost.
function notice(status) {
    const grace = status.grace;
    if (state.epochSeen !== status.epoch) {
        if (state.epochSeen !== null)
            write('warn', 'The server restarted: start ' + count(status.epoch) +
                ', state ' + count(status.state) + '.');
        state.epochSeen = status.epoch;
        state.graceMax = 0;
        state.graceWas = false;
        state.graceEndedMs = 0;
        state.missing.clear();
        state.metricsLast = null;
    }
    const isOn = grace.active || grace.unsettled_locks > 0;
    if (isOn && !state.graceWas)
        write('warn', 'Recovery: ' + graceWords(grace));
    if (!isOn && state.graceWas) {
        state.graceEndedMs = Date.now();
        if (state.link !== 'live') // else an event said so
            write('good', 'Recovery finished.');
    }
    state.graceWas = isOn;
    // In grace nothing is granted but what was stored: all there is was there when it began.
    if (grace.active)
        state.graceMax = Math.max(state.graceMax, status.locks + status.share_reservations,
            grace.unsettled_locks);
    const seen = new Set();
    for (const client of grace.waiting_for) {
        state.missing.set(client.id, {...client, isSettled: false});
        seen.add(client.id);
    }
    for (const [id, client] of state.missing) {
        if (!isOn)
            state.missing.delete(id);
        else if (!seen.has(id) && !grace.waiting_for_more)
            client.isSettled = true;
    }
    const troubles = new Map(troublesOf(status).map(trouble => [trouble.key, trouble.title]));
    for (const trouble of troublesOf(status))
        if (!state.troublesSaid.has(trouble.key))
            write(trouble.isMild ? 'warn' : 'bad', trouble.title + ': ' + trouble.words);
    for (const [key, title] of state.troublesSaid)
        if (!troubles.has(key))
            write('good', 'Over: ' + title + '.');
    state.troublesSaid = troubles;
}

async function readAttention() {
    const [crashed, givenUp, waiters, notifications] = await Promise.all([
        ask(query('clients', {state: 'crashed', limit: 20})),
        ask(query('clients', {state: 'given_up', limit: 20})),
        isMonitor() ? {waiters: []} : ask(query('waiters', {limit: 100})),
        ask(query('notifications', {limit: PAGE_MAX})),
    ]);
    state.absent = [...crashed.clients, ...givenUp.clients];
    state.waiters = waiters.waiters;
    state.notifications = notifications.notifications;
    state.notificationsNext = notifications.next;
}

// All of them, for searching: those in trouble are shown while the rest still comes.
async function readClients() {
    const rows = new Map();
    const take = page => {
        for (const row of page.clients) {
            row.key = [row.id, row.name, row.address, row.mon_name].join(' ').toLowerCase();
            row.order = rank(row) + row.name.replace(/[0-9]+/g, digits => digits.padStart(9, '0'));
            rows.set(row.id, row);
        }
    };
    const isFirst = state.clientsMs === 0;
    const show = () => {
        state.clients = [...rows.values()].sort((a, b) => a.order < b.order ? -1
            : a.order > b.order ? 1 : 0);
    };
    for (const word of ['given_up', 'crashed', 'recovering'])
        take(await ask(query('clients', {state: word, limit: PAGE_MAX})));
    let cursor = null;
    do {
        const page = await ask(query('clients', {limit: PAGE_MAX, cursor}));
        take(page);
        cursor = page.next;
        state.clientsLoading = rows.size;
        if (isFirst && cursor) {
            show();
            draw();
        }
    } while (cursor && rows.size < CLIENTS_MAX && ui.view === 'clients');
    if (cursor && rows.size < CLIENTS_MAX)
        return; // somebody looks at something else
    show();
    state.clientsMore = cursor !== null;
    state.clientsLoading = 0;
    state.clientsMs = Date.now();
}

async function readClient() {
    const id = ui.argument;
    try {
        const client = await ask(query('clients/' + encodeURIComponent(id), {}));
        const isLocker = client.protocol === 'nlm';
        const [locks, waiters] = isLocker ? await Promise.all([
            ask(query('locks', {client: id, limit: ROWS_SHOWN})),
            ask(query('waiters', {client: id, limit: ROWS_SHOWN})),
        ]) : [{locks: [], next: null}, {waiters: []}];
        if (id !== ui.argument)
            return;
        state.client = client;
        state.clientAsked = id;
        state.clientError = '';
        state.clientLocks = locks.locks;
        state.clientLocksNext = locks.next;
        state.clientWaiters = waiters.waiters;
    } catch (error) {
        if (!(error instanceof Refused) || id !== ui.argument)
            throw error;
        state.clientError = error.message;
    }
}

// What the words in the search field of the locks stand for.
function lockFilter() {
    const text = ui.lockSearch.trim();
    if (/^c[0-9]+$/.test(text))
        return {client: text};
    if (/^([0-9a-f]{2}){4,}$/i.test(text))
        return {file: text.toLowerCase()};
    return {};
}

async function readLocks() {
    const filter = lockFilter(), cursor = state.pages[state.lockPage];
    try {
        const [page, waiters] = await Promise.all([
            ask(query('locks', {...filter, limit: PAGE_MAX, cursor})),
            ask(query('waiters', {...filter, limit: 200})),
        ]);
        const files = [...new Set(waiters.waiters.map(row => row.file))]
            .filter(file => matchesLockSearch({file}) || waiters.waiters.some(row =>
                row.file === file && matchesLockSearch(row)));
        const contended = [];
        for (const file of files.slice(0, CONTENDED_SHOWN))
            contended.push(await readOneFile(file));
        if (cursor !== state.pages[state.lockPage] || ui.view !== 'locks')
            return;
        state.locks = page.locks;
        state.locksNext = page.next;
        state.contended = contended;
        state.contendedMore = files.length - contended.length;
        state.locksError = '';
    } catch (error) {
        if (!(error instanceof Refused))
            throw error;
        state.locks = [];
        state.contended = [];
        state.locksNext = null;
        state.locksError = error.message;
    }
    state.locksMs = Date.now();
}

async function readOneFile(file) {
    const [locks, waiters] = await Promise.all([
        ask(query('locks', {file, limit: PAGE_MAX})),
        ask(query('waiters', {file, limit: PAGE_MAX})),
    ]);
    return {file, locks: locks.locks, waiters: waiters.waiters,
        more: locks.next !== null || waiters.next !== null};
}

async function readFile() {
    const file = await readOneFile(ui.argument);
    if (file.file === ui.argument)
        state.file = file;
}

const always = () => true;
const readers = {
    status: new Reader(readStatus, always),
    // Whose waiters are to be asked for the status says.
    attention: new Reader(readAttention, () => state.status !== null &&
        ['overview', 'notifications'].includes(ui.view)),
    clients: new Reader(readClients, () => ui.view === 'clients', 20),
    client: new Reader(readClient, () => ui.view === 'client'),
    locks: new Reader(readLocks, () => ui.view === 'locks', 10),
    file: new Reader(readFile, () => ui.view === 'file', 10),
    metrics: new Reader(readMetrics, always),
};

const lists = Object.values(readers).filter(reader => reader.isWanted !== always);

function wantLists(delayMs) {
    for (const reader of lists)
        if (reader.isWanted())
            reader.want(delayMs);
}

// ---- metrics --------------------------------------------------------------------------------

// Sums of what the charts need. Prometheus' text: name{labels} value.
function readSamples(text) {
    const sums = {calls: 0, commits: 0, commitSeconds: 0, buckets: new Map()};
    const commit = 'holdfast_store_commit_duration_seconds_';
    for (const line of text.split('\n')) {
        const value = Number(line.slice(line.lastIndexOf(' ') + 1));
        if (line.startsWith('nlm_requests_total{') || line.startsWith('nsm_requests_total{'))
            sums.calls += value;
        else if (line.startsWith(commit + 'sum'))
            sums.commitSeconds = value;
        else if (line.startsWith(commit + 'count'))
            sums.commits = value;
        else if (line.startsWith(commit + 'bucket'))
            sums.buckets.set(Number(/le="([^"]*)"/.exec(line)[1].replace('+Inf', 'Infinity')),
                value);
    }
    return sums;
}

// The duration below which this share of the commits between two samples lies, in milliseconds.
function quantile(before, after, share) {
    const total = after.commits - before.commits;
    let lower = 0, below = 0;
    for (const [limit, value] of after.buckets) {
        const upTo = value - (before.buckets.get(limit) || 0);
        if (upTo >= share * total && upTo > below) {
            const part = (share * total - below) / (upTo - below);
            return 1000 * (limit === Infinity ? lower : lower + part * (limit - lower));
        }
        below = upTo;
        lower = limit;
    }
    return 1000 * lower;
}

async function readMetrics() {
    const atMs = Date.now();
    let sums;
    try {
        sums = readSamples(await ask('/metrics', true));
        state.metricsOff = false;
    } catch (error) {
        state.metricsOff = error instanceof Refused && error.status === 404;
        state.metricsLast = null;
        return;
    }
    const last = state.metricsLast;
    state.metricsLast = {atMs, sums};
    const seconds = last ? (atMs - last.atMs) / 1000 : 0;
    if (!last || sums.calls < last.sums.calls || seconds > 30 || seconds < 0.5)
        return;
    const commits = sums.commits - last.sums.commits;
    state.samples.push({
        atMs,
        calls: (sums.calls - last.sums.calls) / seconds,
        middle: commits > 0 ? quantile(last.sums, sums, 0.5) : null,
        high: commits > 0 ? quantile(last.sums, sums, 0.99) : null,
    });
    if (state.samples.length > SAMPLES_MAX)
        state.samples.shift();
}

// ---- the stream of events -------------------------------------------------------------------

let stream = null, streamTimer = 0, streamPauseMs = 1000;

function idOf(event) {
    return 'c' + event.value;
}

function onFile(event) {
    return event.path ? ' on ' + event.path : '';
}

// What is said of each kind of event: how it is marked, and the sentence.
const kinds = {
    registered: ['', e => isMonitor() ? `The lock manager watches ${e.name} (SM_MON).`
        : `A host at ${e.address} monitors ${e.name} (SM_MON).`],
    client_added: ['good', e => `New lock client ${e.name} at ${e.address} (${idOf(e)}).`],
    blocked: ['warn', e => `${e.name} (${idOf(e)}) is waiting for a lock${onFile(e)}.`],
    granted: ['good', e => `${e.name} (${idOf(e)}) got the lock it waited for${onFile(e)}.`],
    notice: ['warn', e => `${e.name} reported its reboot (state ${e.value}).`],
    notice_ignored: ['', e => `Ignored a reboot notification for ${e.name} from ` +
        `${e.address}: no client has that name there.`],
    notice_ambiguous: ['warn', e => `Ignored a reboot notification for ${e.name} from ` +
        `${e.address}: several clients there share that short name.`],
    notice_foreign: ['warn', e => `Ignored a reboot notification for ${e.name} from ` +
        `${e.address}: the name does not resolve to that address.`],
    notice_unconfirmed: ['', e => `Ignored a reboot notification for ${e.name} from ` +
        `${e.address}: its own status monitor does not confirm it.`],
    told: ['', e => `Notified ${e.name} of the ${restart()} (state ${e.value}).`],
    not_reached: ['warn', e => `Could not notify ${e.name} at ${e.address} of the ${restart()} ` +
        'yet; retrying.'],
    given_up: ['bad', e => `Could not notify ${e.name} at ${e.address} within --give-up; ` +
        'the next start tries again.'],
    round_over: ['', e => `First round of notifications finished: ${e.name}.`],
    unresolved: ['warn', e => `The name ${e.name} does not resolve: its host can neither be ` +
        'notified nor believed; retrying.'],
    resolved: ['', e => `The name ${e.name} resolves again.`],
    upcall: ['', e => `Told the lock manager that ${e.name} rebooted (state ${e.value}).`],
    upcall_failed: ['warn', e => `Could not tell the lock manager that ${e.name} rebooted; ` +
        'retrying.'],
    restart_notice: ['warn', e => `Notifying every watched host of a restart (state ${e.value}).`],
    lockd_restarted: ['bad', e => 'The lock manager seems to have lost its locks: it registers ' +
        `${e.name} again. Run holdfast restart-notice to have every host reclaim.`],
    client_rebooted: ['warn', e => `${e.name} rebooted (state ${e.value}).`],
    client_unreached: ['bad', e => `${e.name} at ${e.address} is unreachable; its ` +
        `${plural(e.value, 'lock')} will be released when grace ends unless it returns.`],
    client_renewed: ['warn', e => `${e.name} (${idOf(e)}) rebooted or was released; ` +
        'releasing its old locks.'],
    client_freed: ['good', e => `Released ${plural(e.value, 'old lock')} of ${e.name}.`],
    namesake_refused: ['warn', e => `Refused ${e.address}: ${e.name} (${idOf(e)}) holds it at ` +
        'another address.'],
    client_moved: ['', e => `${e.name} (${idOf(e)}) was moved to ${e.address}.`],
    not_resumed: ['warn', e => `--recovery resume is not possible this time: ${e.name}.`],
    grace_over: [e => e.value === 0 ? 'good' : 'bad', e => e.value === 0
        ? 'Grace period ended: every stored lock was reclaimed or released.'
        : `Grace period ended; released ${plural(e.value, 'lock')} not reclaimed.`],
    reclaim_denied: ['bad', e => `Refused a reclaim of ${e.name} at ${e.address}: no stored ` +
        'lock matches it, or another client reclaimed those bytes.'],
    holder_silent: ['bad', e => `Requests are blocked by ${e.name} (${idOf(e)}) at ` +
        `${e.address}, which does not answer; if it is gone: holdfast release ${idOf(e)}`],
    limit: ['bad', e => `Refused a registration of ${e.name}: --max-clients reached.`],
    no_bytes: ['bad', e => `Refused ${e.name}: --max-bytes used up.`],
    no_room: ['bad', () => 'The store is full: new locks are refused.'],
    lock_limit: ['bad', e => `Refused a lock of ${e.name}: --max-locks reached.`],
    client_lock_limit: ['bad', e => `Refused a lock of ${e.name}: --max-locks-per-client reached.`],
    waiter_limit: ['bad', e => `Refused a waiting request of ${e.name}: --max-waiters reached.`],
    address_limit: ['bad', e => `Refused ${e.name}: ${e.address} reached --max-per-address.`],
    record_evicted: ['warn', e => `Forgot ${e.name} at ${e.address}, which held nothing, to make ` +
        'room for a new client.'],
    crash_simulated: ['warn', () => 'A crash was simulated (SM_SIMU_CRASH).'],
};

function write(mark, text, atMs) {
    state.log.unshift({key: ++state.logCount, atMs: atMs || Date.now() + state.skewMs, mark, text});
    if (state.log.length > LOG_MAX)
        state.log.pop();
}

function onKind(event) {
    let data;
    try {
        data = JSON.parse(event.data);
    } catch (error) {
        return;
    }
    const [mark, say] = kinds[event.type];
    write(typeof mark === 'function' ? mark(data) : mark, say(data), Date.parse(data.time));
    wantLists(SETTLE_MS);
    draw();
}

function closeStream() {
    clearTimeout(streamTimer);
    streamTimer = 0;
    if (stream)
        stream.close();
    stream = null;
}

// The browser connects again by itself, unless it was refused.
function openStream() {
    closeStream();
    stream = new EventSource('/api/v1/events');
    stream.onopen = () => {
        streamPauseMs = 1000;
        state.link = 'live';
        state.heardMs = Date.now();
        readers.status.want();
        wantLists();
        draw();
    };
    stream.onerror = () => {
        if (state.link === 'live')
            state.link = 'polling';
        readers.status.now();
        if (stream.readyState === EventSource.CLOSED) {
            streamTimer = setTimeout(openStream, streamPauseMs);
            streamPauseMs = Math.min(30000, 2 * streamPauseMs);
        }
        draw();
    };
    stream.addEventListener('status', event => {
        state.answeredMs = state.heardMs = Date.now();
        state.link = 'live';
        takeStatus(JSON.parse(event.data));
        draw();
    });
    for (const name of Object.keys(kinds))
        stream.addEventListener(name, onKind);
    stream.addEventListener('more', event => {
        write('', 'And ' + plural(JSON.parse(event.data).count, 'event') +
            ' more within a second.');
        wantLists(SETTLE_MS);
    });
    stream.addEventListener('lost', event => {
        write('warn', plural(JSON.parse(event.data).count, 'event') +
            ' missed by this page.');
    });
}

// ---- the state in words, as `holdfast status` says it ---------------------------------------

function missingWords(client) {
    if (client.isSettled)
        return 'done';
    const left = client.unsettled_locks, told = client.told_seconds_ago;
    const reached = client.reached_seconds_ago;
    if (told !== null || reached !== null)
        return (told !== null ? `notified ${duration(told)} ago`
            : `heard from ${duration(reached)} ago`) +
            `, ${count(client.reclaimed)} of ${count(client.reclaimed + left)} reclaimed`;
    return (client.attempts > 0 ? `unreachable, attempt ${count(client.attempts)}`
                                : 'being notified') + `, ${plural(left, 'lock')}`;
}

function rpcbindWords(rpcbind) {
    return rpcbind.mode + ': ' + (rpcbind.mode === 'off' ? 'clients must know the port'
        : !rpcbind.registered ? rpcbind.reason
        : isMonitor() ? 'registered; the lock manager can find the monitor'
        : 'registered; clients can find the server');
}

function graceLeft(grace) {
    return Math.max(0, Math.ceil(grace.remaining_seconds - (Date.now() - state.statusMs) / 1000));
}

function graceWords(grace) {
    const clients = grace.waiting_for.length;
    const begin = grace.active ? `grace ${grace.remaining_seconds} s left`
                               : 'grace is over, but some clients are still reclaiming';
    if (grace.unsettled_locks === 0)
        return begin + '.';
    return `${begin}, waiting for ${plural(grace.unsettled_locks, 'lock')} of ` +
        `${grace.waiting_for_more ? 'more than ' : ''}${plural(clients, 'client')}.`;
}

function troublesOf(status) {
    const list = [], store = status.store, rpcbind = status.rpcbind;
    if (store.commit_seconds > 1)
        list.push({key: 'stall', title: 'The store is stalled',
            words: `a commit has been running for ${duration(store.commit_seconds)}; ` +
                'replies wait for it.'});
    if (!store.has_room)
        list.push({key: 'room', title: 'The store is full', words: isMonitor()
            ? 'new hosts are refused, and with them their locks.'
            : 'new locks are refused; unlocking works.'});
    if (store.incomplete)
        list.push({key: 'incomplete', isMild: true, title: 'The store may have lost records',
            words: isMonitor() ? 'a host may miss the notice of the last reboot.'
                : 'the grace period runs in full, and reclaims of unknown locks are granted.'});
    if (rpcbind.mode !== 'off' && !rpcbind.registered)
        list.push({key: 'rpcbind', title: isMonitor() ? 'The lock manager cannot find the monitor'
            : 'Clients cannot find the server',
        words: `rpcbind (${rpcbind.mode}): ${rpcbind.reason}`});
    const hosts = status.hosts;
    if (hosts && hosts.upcalls_owed > 0)
        list.push({key: 'upcalls', title: 'The lock manager does not answer',
            words: `it has yet to be notified of ${plural(hosts.upcalls_owed, 'reboot')}; until ` +
                'then it keeps the locks of hosts that have lost them.'});
    if (hosts && hosts.unresolved > 0)
        list.push({key: 'names', isMild: true, title: 'Names do not resolve',
            words: `${plural(hosts.unresolved, 'watched host')} can be neither notified nor ` +
                'believed.'});
    for (const holder of status.silent_holders || [])
        list.push({key: holder.id, isMild: true, client: holder.id,
            title: `${holder.name} does not answer`,
            words: `${plural(holder.waiters, 'request')} blocked ` +
                `${duration(holder.blocked_seconds)} by ${holder.address} (${holder.id}, ` +
                `${holder.name}), silent for ${duration(holder.silent_seconds)}.`,
            command: `holdfast release ${holder.id}`});
    return list;
}

// The same of a status monitor.
function monitorNow(hosts, troubles, grave) {
    if (grave || state.notReady)
        return {look: 'bad', troubles, title: !grave ? 'Not ready' : {rpcbind: 'Hard to find',
            upcalls: 'Upcalls wait'}[grave.key] || 'Store trouble', words: !grave ? state.notReady
            : 'Watched hosts are remembered; what is owed is tried again.'};
    if (hosts.owed > 0)
        return {look: 'warn', troubles, title: hosts.notifying ? 'Notifying' : 'Waiting',
            words: `${plural(hosts.owed, 'host')} of ${count(hosts.watched)} not yet notified of ` +
                'the last reboot of this machine' + (hosts.notifying ? '.'
                : '; that begins when its NFS server is up.')};
    return {look: troubles.length ? 'warn' : 'good', title: 'Monitoring', troubles,
        words: hosts.watched === 0 ? 'No host is watched yet.'
            : `${plural(hosts.watched, 'host')} watched for the lock manager of this machine. ` +
                'Nothing is owed.'};
}

// Title, words and colour of the state. The first that applies is what matters most.
function stateNow() {
    const status = state.status;
    if (state.starting)
        return {look: 'warn', title: 'Starting', words: 'The server is loading its store.'};
    if (!status)
        return state.link === 'gone'
            ? {look: 'bad', title: 'No reply', words: 'The server does not reply. Still trying.'}
            : {look: 'idle', title: 'Connecting', words: 'Connecting to the server.'};
    if (state.link === 'gone')
        return {look: 'bad', title: 'No reply', words: 'The server has not replied for ' +
            duration((Date.now() - state.answeredMs) / 1000) + '. Data below is from ' +
            clockOf(state.statusMs) + '. Still trying.'};
    const troubles = troublesOf(status), grace = status.grace;
    const grave = troubles.find(trouble => !trouble.isMild);
    if (isMonitor())
        return monitorNow(status.hosts, troubles, grave);
    if (grace.active)
        return {look: 'warn', title: 'Recovering', clock: graceLeft(grace) + ' s left', troubles,
            words: grace.unsettled_locks === 0
                ? 'Clients may reclaim their locks. New locks wait until the grace period ends.'
                : `Waiting for ${plural(grace.unsettled_locks, 'lock')} of ` +
                    (grace.waiting_for_more ? 'more than ' : '') +
                    `${plural(grace.waiting_for.length, 'client')}. New locks wait until these ` +
                    'are reclaimed or the grace period ends.'};
    if (grave)
        return {look: 'bad', troubles, title: grave.key === 'rpcbind' ? 'Hard to find'
            : 'Store trouble', words: grave.key === 'rpcbind'
            ? 'Clients that know the port are served; others cannot find the server.'
            : 'Locks are safe; new requests are delayed or refused.'};
    if (state.notReady)
        return {look: 'bad', troubles, title: 'Not ready', words: state.notReady};
    if (grace.unsettled_locks > 0)
        return {look: 'warn', title: 'Ready', troubles, words: 'Clients are served. ' +
            `${plural(grace.unsettled_locks, 'lock')} ` +
            (grace.unsettled_locks === 1 ? 'is' : 'are') + ' kept for clients still reclaiming.'};
    const since = state.graceEndedMs ? (Date.now() - state.graceEndedMs) / 1000 : Infinity;
    return {look: troubles.length ? 'warn' : 'good', title: 'Ready', troubles,
        words: since < 2 ? 'Recovered just now. Clients are served.'
            : since < 60 ? `Recovered ${duration(since)} ago. Clients are served.`
            : status.locks === 0 ? 'Clients are served. No locks are held.'
            : `Clients are served. ${plural(status.locks, 'lock')} held` +
                (status.waiters ? `, ${plural(status.waiters, 'request')} waiting.` : ', nobody ' +
                'waits.')};
}

// ---- small parts ----------------------------------------------------------------------------

// What is not current looks like it.
function staleClass() {
    return state.link === 'gone' ? ' stale' : '';
}

function tag(text, look) {
    return h('span', {class: 'tag ' + (look || '')}, text);
}

function clientLink(id, text) {
    return h('a', {href: '#/clients/' + encodeURIComponent(id)}, text);
}

function fileLink(file) {
    return h('a', {href: '#/files/' + encodeURIComponent(file), class: 'mono', title: file},
        fileText(file));
}

// Where no sets of files are named, all of them are in one, and that says nothing.
function shareTag(share) {
    return share && share !== 'default' ? tag(share) : null;
}

function empty(title, words) {
    return h('div', {class: 'empty'}, h('b', null, title), h('p', null, words));
}

function searchField(id, label, value, onText) {
    return h('div', {class: 'search'},
        h('label', {class: 'hidden-text', for: id}, label),
        h('input', {type: 'search', id, value, placeholder: label, autocomplete: 'off',
            spellcheck: 'false', maxlength: '256',
            on: {input: event => onText(event.target.value)}}));
}

function table(columns, rows, label) {
    return h('table', {role: 'table', 'aria-label': label},
        h('thead', {role: 'rowgroup'}, h('tr', {role: 'row'}, columns.map(column =>
            h('th', {role: 'columnheader', scope: 'col', class: column.kind || ''},
                column.label)))),
        h('tbody', {role: 'rowgroup'}, rows.map(row => h('tr', {role: 'row', key: row.key},
            row.cells.map((cell, i) => h('td', {role: 'cell', 'data-label': columns[i].label,
                class: columns[i].kind || ''}, cell))))));
}

function pager(text, isFirst, isLast, turn) {
    return h('div', {class: 'pager'}, h('span', {class: 'soft small'}, text),
        isFirst && isLast ? null : [
            h('button', {type: 'button', disabled: isFirst, id: 'previous',
                on: {click: () => turn(-1)}}, 'Previous'),
            h('button', {type: 'button', disabled: isLast, id: 'next',
                on: {click: () => turn(1)}}, 'Next')]);
}

function viewTitle(text, ...more) {
    return h('div', {class: 'head'}, h('h1', {class: 'view-title break', id: 'title',
        tabindex: '-1'}, text), more);
}

// ---- bars -----------------------------------------------------------------------------------

function endOf(row) {
    return row.length === 0 ? Infinity : row.offset + row.length;
}

// Where each byte is drawn, from 0 to 1. Ranges differ by many powers of two, so a stretch between
// two ends of ranges gets room by the logarithm of its length, and one that nobody touches little.
function scaleOf(rows) {
    const edges = [...new Set(rows.flatMap(row => [row.offset, endOf(row)]))]
        .sort((a, b) => a < b ? -1 : 1);
    const opened = new Map();
    for (const row of rows) {
        opened.set(row.offset, (opened.get(row.offset) || 0) + 1);
        opened.set(endOf(row), (opened.get(endOf(row)) || 0) - 1);
    }
    const places = new Map();
    let total = edges[0] > 0 ? 1 : 0, depth = 0;
    for (let i = 0; i < edges.length; i++) {
        places.set(edges[i], total);
        depth += opened.get(edges[i]);
        if (i + 1 === edges.length)
            break;
        const length = edges[i + 1] - edges[i];
        total += depth === 0 ? 1.5 : length === Infinity ? 6 : 2 + Math.log2(1 + length) / 2;
    }
    return {edges, at: edge => places.get(edge) / total};
}

function percent(part) {
    return (100 * part).toFixed(3) + '%';
}

function bar(scale, row, look, key) {
    const left = scale.at(row.offset), right = scale.at(endOf(row));
    return h('div', {key, class: 'bar ' + look + (row.length === 0 ? ' to-end' : ''),
        title: rangeText(row), style: {left: percent(left), width: percent(right - left)}});
}

function lookOf(lock) {
    return (lock.state === 'held' ? '' : lock.state) + (lock.exclusive ? '' : ' shared');
}

function modeOf(row) {
    return row.exclusive ? 'exclusive' : 'shared';
}

const lockWords = {
    held: '', offered: ', being granted', unsettled: ', not reclaimed yet',
    freeing: ', being released',
};

// One row for each owner, in the order in which they come.
function lanesOf(rows) {
    const lanes = new Map();
    for (const row of rows) {
        const key = row.client + ' ' + row.svid + ' ' + row.owner;
        if (!lanes.has(key))
            lanes.set(key, {key, first: row, rows: []});
        lanes.get(key).rows.push(row);
    }
    return [...lanes.values()];
}

function lane(scale, one, words, look) {
    return h('div', {class: 'lane', key: one.key},
        h('div', {class: 'who'}, clientLink(one.first.client, clientText(one.first)),
            h('span', {class: 'soft small'}, one.first.client + ', process ' + one.first.svid)),
        h('div', {class: 'track', role: 'img', 'aria-label': one.rows.slice(0, 3).map(rangeText)
            .join(', ')}, one.rows.slice(0, BARS_MAX).map((row, i) =>
            bar(scale, row, look(row), i))),
        h('div', {class: 'range'}, words));
}

function lockLaneWords(one) {
    const row = one.first;
    return one.rows.length > 1
        ? [plural(one.rows.length, 'range'), h('br'), modeOf(row) + ', since ' +
            ago(row.granted_at).replace(/ ago$/, '')]
        : [rangeText(row), h('br'), modeOf(row) + lockWords[row.state] + ', ' +
            ago(row.granted_at)];
}

function waitSeconds(row) {
    return Math.max(0, (now() - Date.parse(row.queued_at)) / 1000);
}

function waiterLaneWords(one) {
    const row = one.first, by = row.blocked_by;
    const behind = row.ahead > 0 ? `, behind ${plural(row.ahead, 'other')}` : '';
    return [rangeText(row) + ', ' + modeOf(row), h('br'), 'waits ' + duration(waitSeconds(row)) +
        (by ? ' for ' + clientText(by) : ', next in line') + behind];
}

function axis(scale) {
    const edges = scale.edges, marks = [];
    let last = -1;
    edges.forEach((edge, i) => {
        const place = scale.at(edge), isLast = i + 1 === edges.length;
        if (!isLast && (place - last < 0.14 || place > 0.84) && i > 0)
            return;
        last = place;
        marks.push(h('span', {class: place < 0.06 ? 'first' : place > 0.9 ? 'last' : '',
            style: {left: percent(place)}}, edge === Infinity ? 'end of file' : count(edge)));
    });
    return h('div', {class: 'lane axis-lane', 'aria-hidden': 'true'}, h('div'),
        h('div', {class: 'axis'}, marks), h('div'));
}

function fileCard(file, lanesMax, isAlone) {
    const holders = lanesOf(file.locks);
    const waiters = lanesOf([...file.waiters].sort((a, b) => a.queued_at < b.queued_at ? -1 : 1));
    const shown = [...holders.slice(0, lanesMax), ...waiters.slice(0, lanesMax)]
        .flatMap(one => one.rows.slice(0, BARS_MAX));
    if (shown.length === 0)
        return null;
    const scale = scaleOf(shown);
    const hidden = (list, word) => list.length > lanesMax
        ? h('p', {class: 'soft small'}, `and ${plural(list.length - lanesMax, word)} more`) : null;
    const share = (file.locks[0] || file.waiters[0]).share;
    return h('article', {class: 'sheet pad', key: file.file},
        h('div', {class: 'file-head'}, isAlone ? null : fileLink(file.file), shareTag(share),
            h('span', {class: 'soft small'}, plural(file.locks.length, 'lock') +
                (file.more ? ' or more' : '') + ' of ' + plural(holders.length, 'owner') +
                (waiters.length ? ', ' + plural(file.waiters.length, 'request') + ' waiting'
                                : ''))),
        h('div', {class: 'lanes'},
            holders.slice(0, lanesMax).map(one => lane(scale, one, lockLaneWords(one), lookOf)),
            hidden(holders, 'owner')),
        waiters.length === 0 ? null : h('div', {class: 'queue'},
            h('p', {class: 'queue-title'}, 'Waiting, in order'),
            h('div', {class: 'lanes'}, waiters.slice(0, lanesMax).map(one =>
                lane(scale, one, waiterLaneWords(one), () => 'waiting')),
            hidden(waiters, 'waiting owner'))),
        axis(scale));
}

function fileStrip(file) {
    const scale = scaleOf(file.locks.slice(0, BARS_MAX));
    const owners = new Set(file.locks.map(row => row.client)).size;
    const waiting = file.locks.some(row => row.waiters > 0);
    return h('li', {key: file.file},
        h('div', {class: 'file-head'}, fileLink(file.file), shareTag(file.locks[0].share)),
        h('div', {class: 'track', 'aria-hidden': 'true'}, file.locks.slice(0, BARS_MAX)
            .map((row, i) => bar(scale, row, lookOf(row), i))),
        h('div', {class: 'soft small'}, plural(file.locks.length, 'lock') + ' of ' +
            (owners === 1 ? clientText(file.locks[0]) : plural(owners, 'client')),
        waiting ? [' ', tag('contended', 'warn')] : null));
}

function legend() {
    return h('div', {class: 'legend', 'aria-hidden': 'true'}, [['', 'exclusive'],
        ['shared', 'shared'], ['offered', 'being granted'],
        ['unsettled', 'not reclaimed yet'], ['waiting', 'waiting']].map(([look, word]) =>
        h('span', null, h('i', {class: 'bar ' + look}), word)));
}

// ---- charts ---------------------------------------------------------------------------------

function niceAbove(value) {
    const power = 10 ** Math.floor(Math.log10(value || 1));
    return [1, 2, 5, 10].map(step => step * power).find(limit => limit >= value) || 1;
}

// A curve of 300 x 80, with gaps where nothing was measured.
function curve(samples, field, top) {
    let text = '', isDown = false;
    samples.forEach((sample, i) => {
        const value = sample[field];
        if (value === null) {
            isDown = false;
            return;
        }
        const shown = Math.max(SAMPLES_MIN, samples.length);
        const x = 300 * (shown - samples.length + i) / (shown - 1);
        const y = 80 - 78 * Math.min(1, value / top);
        // A stroke of no length is a dot: a lone value is seen, too.
        text += isDown ? `L${x.toFixed(1)} ${y.toFixed(1)}`
                       : `M${x.toFixed(1)} ${y.toFixed(1)}h0`;
        isDown = true;
    });
    return text;
}

function shortNumber(value) {
    return value >= 100 ? count(Math.round(value)) : value >= 10 ? value.toFixed(1)
        : value === 0 ? '0' : value.toFixed(2);
}

function chart(title, unit, field, second, words, nothing) {
    const samples = state.samples;
    const known = samples.filter(sample => sample[field] !== null);
    const latest = known.length ? known[known.length - 1][field] : null;
    const top = niceAbove(Math.max(...known.map(sample => Math.max(sample[field],
        second ? sample[second] : 0)), 0));
    const body = state.metricsOff
        ? h('p', {class: 'soft none', key: 'off'}, 'Not measured: metrics are off ' +
            '(--metrics off).')
        : latest === null ? h('p', {class: 'soft none', key: 'none'}, nothing)
        : h('div', {key: 'on'},
            h('svg', {viewBox: '0 0 300 80', preserveAspectRatio: 'none', role: 'img',
                'aria-label': `${title}: ${shortNumber(latest)} ${unit} now, at most ` +
                    `${shortNumber(Math.max(...known.map(sample => sample[field])))} recently`},
                h('line', {class: 'base', x1: 0, x2: 300, y1: 80, y2: 80}),
                h('line', {class: 'base', x1: 0, x2: 300, y1: 2, y2: 2}),
                second ? h('path', {class: 'second', d: curve(samples, second, top)}) : null,
                h('path', {class: 'curve', d: curve(samples, field, top)})),
            h('p', {class: 'chart-feet soft small'}, h('span', null, words),
                h('span', null, 'top ' + (top < 1 ? top : count(top)))));
    return h('section', {class: 'sheet pad chart'},
        h('div', {class: 'chart-head'}, h('h2', null, title), latest === null
            ? null : h('p', null, h('span', {class: 'figure'}, shortNumber(latest)),
                h('span', {class: 'soft small'}, unit))), body);
}

// ---- views ----------------------------------------------------------------------------------

function statePanel() {
    const what = stateNow(), grace = state.status && state.status.grace;
    const isRecovering = grace && state.link !== 'gone' &&
        (grace.active || grace.unsettled_locks > 0);
    const missing = isRecovering ? [...state.missing.values()] : [];
    missing.sort((a, b) => a.isSettled - b.isSettled || b.unsettled_locks - a.unsettled_locks);
    const settled = grace ? state.graceMax - grace.unsettled_locks : 0;
    return h('section', {class: 'sheet state ' + what.look, 'aria-label': 'State', id: 'state'},
        h('div', {class: 'state-top'}, h('h1', {id: 'title', tabindex: '-1'}, what.title),
            what.clock ? h('span', {class: 'clock'}, what.clock) : null),
        h('p', {class: 'words'}, what.words),
        what.troubles && what.troubles.length ? h('ul', {class: 'troubles'},
            what.troubles.map(trouble => h('li', {key: trouble.key,
                class: trouble.isMild ? 'mild' : ''},
            h('b', null, trouble.client ? clientLink(trouble.client, trouble.title)
                                        : trouble.title), ': ' + trouble.words,
            trouble.command ? [' To release its locks: ', h('code', null, trouble.command)]
                            : null))) : null,
        isRecovering && state.graceMax > 0 ? h('div', {class: 'progress'},
            h('p', {class: 'small soft'}, `${count(settled)} of ` +
                `${plural(state.graceMax, 'stored lock')} reclaimed or released`),
            h('div', {class: 'meter', role: 'progressbar', 'aria-label': 'stored locks done',
                'aria-valuemin': 0, 'aria-valuemax': state.graceMax, 'aria-valuenow': settled},
            h('i', {style: {width: percent(settled / state.graceMax)}}))) : null,
        missing.length ? h('ul', {class: 'missing'}, missing.slice(0, NAMED_MAX).map(client => {
            const all = client.reclaimed + client.unsettled_locks;
            const part = client.isSettled ? 1 : all > 0 ? client.reclaimed / all : 0;
            return h('li', {key: client.id, class: client.isSettled ? 'done' : ''},
                h('span', {class: 'break'}, clientLink(client.id, client.name || client.address),
                    h('span', {class: 'soft small'}, ' ' + client.id)),
                h('div', {class: 'meter', 'aria-hidden': 'true'},
                    h('i', {style: {width: percent(part)}})),
                h('span', {class: 'small ' + (client.isSettled ? 'done' : 'soft')},
                    missingWords(client)));
        })) : null,
        missing.length > NAMED_MAX || isRecovering && grace.waiting_for_more
            ? h('p', {class: 'small more'}, h('a', {href: '#/clients'}, grace.waiting_for_more
                ? 'and more clients' : `and ${plural(missing.length - NAMED_MAX, 'client')} more`))
            : null);
}

function figures() {
    const status = state.status;
    if (!status)
        return null;
    const one = (href, number, words, look) => h('a', {href}, h('span', {class: 'figure' +
        (look || '')}, number), h('span', {class: 'soft small'}, words));
    const up = h('div', null, h('span', {class: 'figure'}, duration(status.uptime_seconds +
        (state.link === 'live' ? 0 : (Date.now() - state.statusMs) / 1000))),
    h('span', {class: 'soft small'}, `up, state ${status.state}, start ${status.epoch}`));
    if (isMonitor()) {
        const {watched, owed, upcalls_owed: upcalls} = status.hosts;
        return h('div', {class: 'sheet figures' + staleClass()},
            one('#/clients', count(watched), watched === 1 ? 'host watched' : 'hosts watched'),
            one('#/notifications', count(owed), owed === 1 ? 'host to notify' : 'hosts to notify',
                owed ? ' warn' : ''),
            one('#/clients', count(upcalls), upcalls === 1 ? 'upcall owed' : 'upcalls owed',
                upcalls ? ' warn' : ''), up);
    }
    return h('div', {class: 'sheet figures' + staleClass()},
        one('#/clients', count(status.clients + status.registrants), status.registrants
            ? `clients, ${count(status.registrants)} of them monitor-only`
            : status.clients === 1 ? 'client' : 'clients'),
        one('#/locks', count(status.locks), status.locks === 1 ? 'lock held' : 'locks held'),
        one('#/locks', count(status.waiters), status.waiters === 1 ? 'request waiting'
            : 'requests waiting', status.waiters ? ' warn' : ''),
        up);
}

function attention() {
    const items = [];
    for (const client of state.absent.slice(0, NAMED_MAX)) {
        const isGivenUp = client.state === 'given_up';
        items.push({key: 'x' + client.id, look: 'bad', word: isGivenUp ? 'unreachable' : 'crashed',
            text: [clientLink(client.id, clientText(client)), ` at ${client.address} ` + (isGivenUp
                ? `could not be notified of the ${restart()}; the next start tries again.`
                : 'is unreachable.') +
            (client.locks || !isGivenUp ? ` ${plural(client.locks, 'lock')} at risk.` : '')]});
    }
    for (const row of state.notifications.filter(row => row.result === 'given_up' ||
        ['waiting', 'calling'].includes(row.result) && row.attempt > 0).slice(0, NAMED_MAX))
        if (!state.absent.some(client => client.id === row.client))
            items.push({key: 'n' + row.client, look: 'warn', word: 'not notified', text: [
                clientLink(row.client, clientText(row)), ` at ${row.address} has not been ` +
                `notified of the ${restart()}: ${plural(row.attempt, 'attempt')}` +
                (row.next_try_seconds === null ? '.'
                    : `, next in ${duration(row.next_try_seconds)}.`)]});
    const hosts = isMonitor() ? state.status.hosts.waiting_for : [];
    for (const host of hosts.filter(row => !row.address || row.upcall_owed).slice(0, NAMED_MAX))
        items.push({key: 'h' + host.id, look: 'warn', word: host.address ? 'upcall owed'
            : 'not resolved', text: [clientLink(host.id, clientText(host)), host.address
            ? ' rebooted, and the lock manager has not been told yet.'
            : ' does not resolve: it can be neither notified nor believed.']});
    const conflicts = state.status && state.status.name_conflicts || [];
    for (const pair of conflicts.slice(0, NAMED_MAX))
        items.push({key: ['c', pair.id, pair.refused_address].join(' '), look: 'warn',
            word: 'name conflict', text: [`${clientText(pair)} at ${pair.refused_address}, heard ` +
                `from ${ago(pair.refused_last_seen)}, is refused what `, clientLink(pair.id,
                clientText(pair)), ` holds at ${pair.address}, heard from ` +
                `${ago(pair.last_seen)}. ` +
                (pair.can_move ? 'If both are the same host: ' : 'Both hold locks; if both are ' +
                'the same host: '), h('code', null, pair.can_move
                ? `holdfast move ${pair.id} ${pair.refused_address}`
                : `holdfast release ${pair.id}`)]});
    const waiting = [...state.waiters].sort((a, b) => a.queued_at < b.queued_at ? -1 : 1);
    for (const row of waiting.slice(0, NAMED_MAX))
        items.push({key: ['w', row.client, row.owner, row.svid, row.file, row.offset].join(' '),
            look: row.blocked_by && row.blocked_by.answers === 'no' ? 'bad' : 'warn',
            word: 'waiting', text: [clientLink(row.client, clientText(row)), ' waits ' +
                duration(waitSeconds(row)) + ' for ', row.blocked_by
                ? clientLink(row.blocked_by.client, clientText(row.blocked_by)) : 'its turn',
            ' on ', fileLink(row.file), row.blocked_by && row.blocked_by.answers === 'no'
                ? ', silent for ' + duration(row.blocked_by.silent_seconds) +
                  ', does not answer; holdfast release ' + row.blocked_by.client : '']});
    const hasTrouble = state.status && troublesOf(state.status).length > 0;
    const rest = (state.status ? state.status.waiters : 0) - Math.min(NAMED_MAX, waiting.length);
    return h('section', {class: staleClass()},
        h('div', {class: 'head'}, h('h2', null, 'Needs attention')),
        h('div', {class: 'sheet'}, items.length === 0
            ? empty(hasTrouble ? 'Nothing else needs attention' : 'Nothing needs attention',
                isMonitor() ? 'Hosts that are unreachable, names that do not resolve and upcalls ' +
                    'that the lock manager has not answered are listed here.'
                : 'Crashed or unreachable clients, name conflicts and waiting requests are ' +
                    'listed here.')
            : h('ul', {class: 'lines'}, items.map(item => h('li', {key: item.key},
                tag(item.word, item.look), h('span', {class: 'what'}, item.text))),
            state.absent.length > NAMED_MAX ? h('li', {key: 'absent'}, h('a', {href:
                '#/clients'}, 'and more unreachable clients')) : null,
            conflicts.length > NAMED_MAX ? h('li', {key: 'conflicts'},
                `and ${plural(conflicts.length - NAMED_MAX, 'more name conflict')}`) : null,
            rest > 0 && waiting.length ? h('li', {key: 'rest'}, h('a', {href: '#/locks'},
                `and ${plural(rest, 'more waiting request')}`)) : null)));
}

function logLine(entry) {
    return h('li', {key: entry.key, class: entry.mark},
        h('span', {class: 'mark', 'aria-hidden': 'true'}),
        h('time', null, clockOf(entry.atMs)), h('span', {class: 'what'}, entry.text));
}

function viewOverview() {
    return h('div', {class: 'stack', key: 'overview'},
        statePanel(), figures(), attention(),
        h('div', {class: 'pair' + staleClass()},
            chart('Requests', ' per second', 'calls', null, 'the last ' +
                duration(SAMPLE_MS / 1000 * Math.max(SAMPLES_MIN, state.samples.length)),
                'The first values arrive in a few seconds.'),
            chart('Commits', ' ms', 'middle', 'high',
                'median; dashed: 99 %', 'Nothing committed since this page was opened.')),
        h('section', null, h('div', {class: 'head'}, h('h2', null, 'Recent events'),
            h('a', {href: '#/log', class: 'small'}, 'full log')),
        h('div', {class: 'sheet'}, state.log.length === 0
            ? empty('No events since this page was opened', isMonitor() ? 'Registrations, ' +
                'reboots, notifications and upcalls appear here as they happen.'
                : 'Registrations, waits, grants, crashes and recoveries appear here as they happen.')
            : h('ul', {class: 'lines log'}, state.log.slice(0, 6).map(logLine)))));
}

const clientFilters = {
    all: ['All', () => true],
    trouble: ['In trouble', client => rank(client) < 3],
    locks: ['Holding', client => client.locks > 0],
    waiting: ['Waiting', client => client.waiters > 0],
};
const hostFilters = {
    all: ['All', () => true],
    trouble: ['In trouble', host => rank(host) < 3 || !host.host.resolved],
    owed: ['Owed', host => host.host.owed || host.host.upcall_owed],
};

const clientColumns = [{label: 'Client', kind: 'lead'}, {label: 'Address', kind: 'whole'},
    {label: 'State'}, {label: 'Locks', kind: 'number'}, {label: 'Waiting', kind: 'number'},
    {label: 'Last seen'}, {label: 'Notified of restart', kind: 'whole'}];
const hostColumns = [{label: 'Host', kind: 'lead'}, {label: 'Address', kind: 'whole'},
    {label: 'Watched since'}, {label: 'Owed'}, {label: 'Last notice'},
    {label: 'Notified of reboot', kind: 'whole'}];

function clientCells(client) {
    return [
        [clientLink(client.id, client.name || '(no name)'),
            h('span', {class: 'sub'}, client.id + ', ' + client.protocol +
                (client.mon_name ? ', watches ' + client.mon_name : ''))],
        h('span', {class: 'mono break'}, client.address),
        tag(client.state, clientTags[client.state]), count(client.locks),
        client.waiters ? tag(count(client.waiters), 'warn') : '0', ago(client.last_seen),
        isUnreached(client) ? tag(told[client.notification.state], 'warn')
            : h('span', {class: 'soft'}, toldWords(client.notification)),
    ];
}

// What is left to be done for a host.
function owedWords(host) {
    return [host.owed ? 'notice' : '', host.upcall_owed ? 'upcall' : ''].filter(word => word)
        .join(', ');
}

function hostCells(client) {
    const owed = owedWords(client.host);
    return [
        [clientLink(client.id, client.name), h('span', {class: 'sub'}, client.id)],
        client.host.resolved ? h('span', {class: 'mono break'}, client.address)
            : tag('not resolved', 'bad'),
        ago(client.registered_at), owed ? tag(owed, 'warn') : h('span', {class: 'soft'}, 'nothing'),
        client.rebooted_at ? ago(client.rebooted_at) : h('span', {class: 'soft'}, 'none'),
        isUnreached(client) ? tag(told[client.notification.state], 'warn')
            : h('span', {class: 'soft'}, toldWords(client.notification)),
    ];
}

function viewClients() {
    const words = ui.search.toLowerCase().split(/\s+/).filter(word => word);
    const filters = isMonitor() ? hostFilters : clientFilters;
    if (!(ui.filter in filters))
        ui.filter = 'all';
    const fits = filters[ui.filter][1], noun = isMonitor() ? 'host' : 'client';
    const title = isMonitor() ? 'Hosts' : 'Clients';
    const rows = state.clients.filter(client => fits(client) &&
        words.every(word => client.key.includes(word)));
    const last = Math.max(0, Math.ceil(rows.length / ROWS_SHOWN) - 1);
    ui.page = Math.min(ui.page, last);
    const from = ui.page * ROWS_SHOWN, shown = rows.slice(from, from + ROWS_SHOWN);
    return h('div', {key: 'clients', class: staleClass()},
        viewTitle(title, h('span', {class: 'soft'}, state.clientsLoading
            ? `loading, ${count(state.clientsLoading)} so far` : '')),
        h('div', {class: 'controls'},
            searchField('search', 'Search by name, address or id', ui.search, text => {
                ui.search = text;
                ui.page = 0;
                draw();
            }),
            h('div', {class: 'chips', role: 'group', 'aria-label': `Which ${noun}s`},
                Object.entries(filters).map(([name, [label]]) => h('button', {
                    type: 'button', 'aria-pressed': String(ui.filter === name), key: name,
                    on: {click: () => {
                        ui.filter = name;
                        ui.page = 0;
                        draw();
                    }}}, label)))),
        h('div', {class: 'sheet'}, shown.length > 0
            ? table(isMonitor() ? hostColumns : clientColumns, shown.map(client =>
                ({key: client.id, cells: isMonitor() ? hostCells(client) : clientCells(client)})),
            title)
            : state.clientsMs === 0 ? empty('Loading', 'Loading the list.')
            : state.clients.length === 0 ? empty(`No ${noun}s yet`, isMonitor() ? 'A host appears ' +
                'here when the lock manager of this machine begins to watch it (SM_MON).'
                : 'A client appears here with its first lock, or when it registers with the ' +
                'status monitor.')
            : empty('No matches', `No ${noun} matches the search and the filter.`)),
        rows.length > 0 ? pager(`${count(from + 1)}–${count(from + shown.length)} of ` +
            `${count(rows.length)}` + (state.clientsMore ? ' (the server has more)' : ''),
        ui.page === 0, ui.page === last, step => {
            ui.page += step;
            draw();
        }) : null);
}

function record(pairs) {
    return h('dl', {class: 'record sheet'}, pairs.map(([label, value]) =>
        h('div', {key: label}, h('dt', null, label), h('dd', null,
            value === null || value === undefined || value === '' ? '–' : value))));
}

function moment(time) {
    return time ? [ago(time), h('span', {class: 'sub'}, time)] : 'never';
}

function mono(text) {
    return text === null || text === '' ? null : h('span', {class: 'mono'}, text);
}

function viewHost(client, back) {
    const host = client.host, news = client.notification;
    return h('div', {key: 'client', class: 'stack' + staleClass()},
        h('div', null, back, viewTitle(client.name,
            host.resolved ? null : tag('not resolved', 'bad'),
            owedWords(host) ? tag('owed: ' + owedWords(host), 'warn') : null),
        state.clientError ? h('p', {class: 'note'}, 'This host is gone. ' + state.clientError)
            : null,
        record([
            ['Id', mono(client.id)], ['Name (mon_name)', client.name],
            ['Address', host.resolved ? mono(client.address) : 'the name does not resolve'],
            ['Watched since', moment(client.registered_at)],
            ['Watched in this boot', host.registered_in_this_boot ? 'yes'
                : 'no: kept until it is notified'],
            ['Its last notice', client.rebooted_at ? moment(client.rebooted_at) : 'none heard'],
            ['Its NSM state', client.nsm_state === null ? 'unknown' : count(client.nsm_state)],
            ['Last seen', moment(client.last_seen)],
            ['Lock manager told of its reboot', host.upcall_owed ? 'not yet' : 'nothing to tell'],
            ['Notified of our reboot', host.owed ? told[news.state] : 'nothing owed'],
            ['Attempts to notify it', count(news.attempts)],
            ['Next attempt', news.next_try_seconds === null ? 'none planned' : 'in ' +
                duration(news.next_try_seconds)],
            ['Registered by (my_name)', client.callback_host],
            ['Upcall program', client.callback_prog], ['Upcall version', client.callback_vers],
            ['Upcall procedure', client.callback_proc], ['Private bytes', mono(client.priv)],
        ])),
        h('section', {class: 'sheet pad'}, h('h2', null, 'Actions'),
            h('p', {class: 'soft'}, 'This page is read-only. On this machine, as root:'),
            h('ul', {class: 'commands'},
                h('li', null, h('code', null, `holdfast check-client ${client.address ||
                    client.name}`), ' whether it is reachable'),
                h('li', null, h('code', null, `holdfast release ${client.id}`),
                    ' forget it, if it is gone for good'))));
}

function viewClient() {
    const client = state.clientAsked === ui.argument ? state.client : null;
    const back = h('p', {class: 'small'}, h('a', {href: '#/clients'}, isMonitor() ? '← Hosts'
        : '← Clients'));
    if (!client)
        return h('div', {key: 'client'}, back, viewTitle(ui.argument),
            h('div', {class: 'sheet'}, state.clientError
                ? empty(isMonitor() ? 'No such host' : 'No such client', state.clientError)
                : empty('Loading', isMonitor() ? 'Loading the host.' : 'Loading the client.')));
    if (client.host)
        return viewHost(client, back);
    const news = client.notification;
    const yes = value => value ? 'yes' : 'no';
    return h('div', {key: 'client', class: 'stack' + staleClass()},
        h('div', null, back, viewTitle(client.name || client.address,
            tag(client.state, clientTags[client.state]),
            isUnreached(client) ? tag(told[news.state], 'warn') : null),
        state.clientError ? h('p', {class: 'note'}, 'This client is gone. ' + state.clientError)
            : null,
        record([
            ['Id', mono(client.id)], ['Protocol', client.protocol], ['Name', client.name],
            ['Address', mono(client.address)], ['Our address', mono(client.local_address)],
            ['Locks', count(client.locks)], ['Share reservations',
                count(client.share_reservations)], ['Waiting', count(client.waiters)],
            ['Last seen', moment(client.last_seen)],
            ['Registered', moment(client.registered_at)],
            ['Registered in start', count(client.server_epoch)],
            ['Its NSM state', client.nsm_state === null ? 'unknown' : count(client.nsm_state)],
            ['Its last reboot', client.rebooted_at ? moment(client.rebooted_at) : 'none seen'],
            ['Crashed', yes(client.crashed)], ['Monitored', yes(client.monitored)],
            ['Its name was refused elsewhere', yes(client.moved)],
            ['Notified of our restart', toldWords(news)],
            ['Attempts to notify it', count(news.attempts)],
            ['Next attempt', news.next_try_seconds === null ? 'none planned' : 'in ' +
                duration(news.next_try_seconds)],
            ['Not reclaimed yet', count(client.unsettled_locks)],
            ['Reclaimed since our start', count(client.reclaimed)],
            // The callback of SM_MON; clients that only lock have none.
            ...client.protocol !== 'nsm' ? [] : [
                ['Monitors', client.mon_name], ['Called back at', client.callback_host],
                ['Callback program', client.callback_prog],
                ['Callback version', client.callback_vers],
                ['Callback procedure', client.callback_proc],
                ['Private bytes', mono(client.priv)]],
        ])),
        client.protocol !== 'nlm' ? null : h('section', null,
            h('div', {class: 'head'}, h('h2', null, 'Waiting for')),
            h('div', {class: 'sheet'}, state.clientWaiters.length === 0
                ? empty('Not waiting', 'Its blocked requests are listed here.')
                : table([{label: 'File', kind: 'lead'}, {label: 'Range'}, {label: 'Mode'},
                    {label: 'Blocked by'}, {label: 'For'}], state.clientWaiters.map((row, i) =>
                    ({key: i, cells: [fileLink(row.file), rangeText(row), modeOf(row),
                        row.blocked_by ? clientLink(row.blocked_by.client,
                            clientText(row.blocked_by)) : 'next in line',
                        duration(waitSeconds(row))]})), 'Waits'))),
        client.protocol !== 'nlm' ? null : h('section', null,
            h('div', {class: 'head'}, h('h2', null, 'Holds'), state.clientLocksNext
                ? h('span', {class: 'soft small'}, `the first ${ROWS_SHOWN} of ` +
                    count(client.locks)) : null),
            h('div', {class: 'sheet'}, state.clientLocks.length === 0
                ? empty('No locks', 'Its locks are listed here.')
                : table([{label: 'File', kind: 'lead'}, {label: 'Range'}, {label: 'Mode'},
                    {label: 'Process'}, {label: 'State'}, {label: 'Since'}],
                state.clientLocks.map((row, i) => ({key: i, cells: [fileLink(row.file),
                    rangeText(row), modeOf(row), count(row.svid), tag(row.state,
                        row.state === 'held' ? '' : 'warn'), ago(row.granted_at)]})), 'Locks'))),
        h('section', {class: 'sheet pad'}, h('h2', null, 'Actions'),
            h('p', {class: 'soft'}, 'This page is read-only. On the server, as root:'),
            h('ul', {class: 'commands'},
                h('li', null, h('code', null, `holdfast explain ${client.id}`),
                    ' what happens to its locks if the server or the client crashes now'),
                h('li', null, h('code', null, `holdfast check-client ${client.address}`),
                    ' whether it is reachable'),
                h('li', null, h('code', null, `holdfast release ${client.id}`),
                    ' release its locks, if it is gone for good'))));
}

function matchesLockSearch(row) {
    const text = ui.lockSearch.trim().toLowerCase();
    if (!text || Object.keys(lockFilter()).length > 0)
        return true;
    return [row.file, fileText(row.file), row.name, row.address, row.client, row.share]
        .some(value => value && String(value).toLowerCase().includes(text));
}

function viewLocks() {
    const files = new Map(), isContended = new Set(state.contended.map(file => file.file));
    for (const row of state.locks)
        if (matchesLockSearch(row) && !isContended.has(row.file)) {
            if (!files.has(row.file))
                files.set(row.file, {file: row.file, locks: []});
            files.get(row.file).locks.push(row);
        }
    const list = [...files.values()], last = Math.max(0, Math.ceil(list.length / FILES_SHOWN) - 1);
    ui.filePage = Math.min(ui.filePage, last);
    const from = ui.filePage * FILES_SHOWN, total = state.status ? state.status.locks : 0;
    const isLast = ui.filePage === last && !state.locksNext;
    const part = state.lockPage > 0 || state.locksNext
        ? `, of the locks ${count(state.lockPage * PAGE_MAX + 1)}–` +
          `${count(state.lockPage * PAGE_MAX + state.locks.length)} of ${count(total)}` : '';
    return h('div', {key: 'locks', class: 'stack' + staleClass()},
        h('div', null,
            viewTitle('Locks', h('span', {class: 'soft'}, plural(total, 'lock') + ' held' +
                (state.status && state.status.waiters ? ', ' + plural(state.status.waiters,
                    'request') + ' waiting' : ''))),
            h('div', {class: 'controls'}, searchField('search', 'Search by client id (c17), file ' +
                'handle, path, name or address', ui.lockSearch, text => {
                ui.lockSearch = text;
                state.pages = [null];
                state.lockPage = 0;
                ui.filePage = 0;
                readers.locks.want(SETTLE_MS);
                draw();
            })),
            legend()),
        state.locksError ? h('p', {class: 'note'}, state.locksError) : null,
        state.contended.length ? h('section', null,
            h('div', {class: 'head'}, h('h2', null, 'Contended files'), state.contendedMore > 0
                ? h('span', {class: 'soft small'}, `and on ${plural(state.contendedMore, 'file')}` +
                    ' more') : null),
            h('div', {class: 'files'}, state.contended.map(file => fileCard(file,
                LANES_BRIEF)))) : null,
        h('section', null,
            h('div', {class: 'head'}, h('h2', null, state.contended.length ? 'Other files'
                : 'Files')),
            list.length === 0 ? h('div', {class: 'sheet'}, state.locksMs === 0
                ? empty('Loading', 'Loading the list.')
                : total === 0 ? empty('No locks', 'A file appears here as soon as ' +
                    'a client locks part of it.')
                : !ui.lockSearch && state.contended.length ? empty('No other files',
                    'Every locked file is contended.')
                : empty('No matches', 'None of the loaded locks matches the search.'))
                : h('ul', {class: 'strips sheet'}, list.slice(from, from + FILES_SHOWN)
                    .map(fileStrip)),
            list.length > 0 ? pager(`Files ${count(from + 1)}–` +
                `${count(Math.min(list.length, from + FILES_SHOWN))} of ${count(list.length)}` +
                part, ui.filePage === 0 && state.lockPage === 0, isLast, turnFiles) : null));
}

function turnFiles(step) {
    const shown = new Set(state.locks.map(row => row.file)).size;
    const last = Math.max(0, Math.ceil(shown / FILES_SHOWN) - 1);
    if (step > 0 && ui.filePage >= last && state.locksNext) {
        state.pages[++state.lockPage] = state.locksNext;
        ui.filePage = 0;
        readers.locks.now();
    } else if (step < 0 && ui.filePage === 0 && state.lockPage > 0) {
        state.lockPage--;
        ui.filePage = Infinity;
        readers.locks.now();
    } else {
        ui.filePage = Math.max(0, ui.filePage + step);
    }
    draw();
}

function viewFile() {
    const file = state.file.file === ui.argument ? state.file : null;
    const card = file ? fileCard(file, LANES_MAX, true) : null;
    return h('div', {key: 'file', class: staleClass()},
        h('p', {class: 'small'}, h('a', {href: '#/locks'}, '← Locks')),
        viewTitle(fileText(ui.argument)),
        h('p', {class: 'soft small mono break'}, ui.argument),
        h('div', {class: 'controls'}), legend(), h('div', {class: 'controls'}),
        card || h('div', {class: 'sheet'}, file ? empty('No locks on this file', 'New ' +
            'locks on it appear here.') : empty('Loading', 'Loading the locks.')));
}

function viewNotifications() {
    const order = {given_up: 0, waiting: 1, calling: 2, told: 3, none: 4};
    const rows = [...state.notifications].sort((a, b) => order[a.result] - order[b.result] ||
        b.attempt - a.attempt);
    const toldCount = rows.filter(row => row.result === 'told').length;
    const last = Math.max(0, Math.ceil(rows.length / ROWS_SHOWN) - 1);
    ui.page = Math.min(ui.page, last);
    const from = ui.page * ROWS_SHOWN, shown = rows.slice(from, from + ROWS_SHOWN);
    return h('div', {key: 'notifications', class: staleClass()},
        viewTitle('Notifications', rows.length ? h('span', {class: 'soft'}, `${count(toldCount)} ` +
            `of ${count(rows.length)}${state.notificationsNext ? ' (and more)' : ''} notified`)
            : null),
        h('div', {class: 'sheet'}, shown.length === 0
            ? empty('No notifications', isMonitor() ? 'After a reboot of this machine every watched ' +
                'host is notified. Each of them appears here until it has answered.'
                : 'After a restart the server notifies every client that held a lock. Each of them ' +
                'appears here with the result.')
            : table([{label: isMonitor() ? 'Host' : 'Client', kind: 'lead'}, {label: 'Address', kind: 'whole'},
                {label: 'Our name used'}, {label: 'Transport'}, {label: 'Attempt', kind: 'number'},
                {label: 'Result'}, {label: 'Next try'}],
            shown.map(row => ({key: row.client, cells: [
                [clientLink(row.client, row.name || '(no name)'), h('span', {class: 'sub'},
                    row.client + ', ' + row.protocol)],
                h('span', {class: 'mono break'}, row.address),
                h('span', {class: 'break'}, row.name_used), row.transport || '–',
                count(row.attempt), tag(told[row.result], row.result === 'told' ? 'good'
                    : row.result === 'given_up' ? 'bad' : 'warn'),
                row.next_try_seconds === null ? '–' : 'in ' + duration(row.next_try_seconds)]})),
            'Notifications')),
        rows.length > ROWS_SHOWN ? pager(`${count(from + 1)}–${count(from + shown.length)} of ` +
            count(rows.length), ui.page === 0, ui.page === last, step => {
            ui.page += step;
            draw();
        }) : null);
}

function viewLog() {
    const text = ui.logSearch.toLowerCase();
    const rows = state.log.filter(entry => entry.text.toLowerCase().includes(text));
    return h('div', {key: 'log'},
        viewTitle('Log', h('span', {class: 'soft'}, 'since this page was opened')),
        h('div', {class: 'controls'}, searchField('search', 'Search the log', ui.logSearch,
            value => {
                ui.logSearch = value;
                draw();
            })),
        h('div', {class: 'sheet'}, rows.length === 0
            ? empty(state.log.length ? 'No matches' : 'No events yet',
                (isMonitor() ? 'Registrations, reboots, notifications and upcalls'
                    : 'Registrations, waits, grants, crashes and recoveries') + ' appear here as ' +
                'they happen. The server’s own log has everything, including earlier events.')
            : h('ul', {class: 'lines log'}, rows.slice(0, LOG_SHOWN).map(logLine))),
        rows.length > LOG_SHOWN ? h('p', {class: 'soft small pager'},
            `The newest ${LOG_SHOWN} of ${count(rows.length)}`) : null);
}

const views = {overview: viewOverview, clients: viewClients, client: viewClient, locks: viewLocks,
    file: viewFile, notifications: viewNotifications, log: viewLog};
const lockTabs = [['overview', '#/', 'Overview'], ['clients', '#/clients', 'Clients'],
    ['locks', '#/locks', 'Locks'], ['notifications', '#/notifications', 'Notifications'],
    ['log', '#/log', 'Log']];
const monitorTabs = [['overview', '#/', 'Overview'], ['clients', '#/clients', 'Hosts'],
    ['notifications', '#/notifications', 'Notifications'], ['log', '#/log', 'Log']];

function tabs() {
    return isMonitor() ? monitorTabs : lockTabs;
}

// ---- drawing --------------------------------------------------------------------------------

let isDrawing = false, said = '';

function draw() {
    if (isDrawing)
        return;
    isDrawing = true;
    requestAnimationFrame(() => {
        isDrawing = false;
        drawNow();
    });
}

function linkWords() {
    switch (state.link) {
    case 'live':
        return ['Live', ''];
    case 'polling':
        return ['Polling', ` every ${POLL_MS / 1000} s`];
    case 'gone':
        return ['No reply', ''];
    default:
        return ['Connecting', ''];
    }
}

function drawNow() {
    const focused = document.activeElement, what = stateNow(), status = state.status;
    const root = document.getElementById('view');
    if (root.querySelector('noscript'))
        root.textContent = '';
    const current = {client: 'clients', file: 'locks'}[ui.view] || ui.view;
    patch('nav', tabs().map(([name, href, label]) => h('li', {key: name}, h('a', {href,
        'aria-current': name === current ? 'page' : false}, label,
    name === 'locks' && status && status.waiters > 0
        ? h('span', {class: 'count', title: 'requests waiting'}, count(status.waiters)) : null))));
    const [word, more] = linkWords();
    document.getElementById('link').className = 'link ' + state.link;
    patch('link', h('span', {class: 'dot'}), h('span', null, word,
        h('span', {class: 'long'}, more)));
    const isLost = state.link === 'polling' && Date.now() - state.heardMs > NOTE_MS;
    patch('view', isLost ? h('p', {class: 'note', key: 'note'}, 'Live updates are lost: this ' +
        `page polls every ${POLL_MS / 1000} s, and its log may miss events in between.`)
        : null, views[ui.view]());
    patch('foot', status ? [h('span', null, 'holdfast ' + status.version),
        h('span', {class: 'break'}, 'store ' + status.store.url),
        h('span', {class: 'break'}, 'rpcbind ' + rpcbindWords(status.rpcbind)),
        h('span', {class: 'keys-hint'}, 'press ', h('kbd', null, '?'), ' for shortcuts')] : null);
    const title = what.title + (what.clock ? ', ' + what.clock : '');
    document.title = title + ' – holdfast';
    if (said !== what.title) {
        said = what.title;
        document.getElementById('said').textContent = what.title + '. ' + what.words;
    }
    // A row that moved loses the focus on the way.
    if (focused && focused !== document.activeElement && focused.isConnected &&
        document.activeElement === document.body)
        focused.focus({preventScroll: true});
}

// ---- where we are ---------------------------------------------------------------------------

function route(isFirst) {
    const parts = location.hash.replace(/^#\/?/, '').split('/');
    const argument = parts.length > 1 ? decode(parts[1]) : '';
    const before = ui.view;
    if (argument !== ui.argument)
        state.clientError = '';
    ui.view = parts[0] === 'clients' && argument ? 'client' : parts[0] === 'files' ? 'file'
        : tabs().some(([name]) => name === parts[0]) ? parts[0] : 'overview';
    ui.argument = argument;
    if (before !== ui.view)
        ui.page = 0;
    drawNow();
    for (const reader of lists)
        if (reader.isWanted())
            reader.now();
    if (!isFirst) {
        scrollTo(0, 0);
        const title = document.getElementById('title');
        if (title)
            title.focus({preventScroll: true});
    }
}

function decode(text) {
    try {
        return decodeURIComponent(text);
    } catch (error) {
        return '';
    }
}

// ---- keys -----------------------------------------------------------------------------------

const keyTable = [
    [['1', '2', '3', '4', '5'], 'The views, from left to right', key =>
        location.hash = (tabs()[Number(key) - 1] || tabs()[0])[1]],
    [['/'], 'Search', () => focusOn('search')],
    [['j', 'k'], 'Next and previous link in a list', key => step(key === 'j' ? 1 : -1)],
    [['n', 'p'], 'Next and previous page', key => press(key === 'n' ? 'next' : 'previous')],
    [['t'], 'Light, dark, or system colours', () => turnTheme()],
    [['?'], 'These shortcuts', () => document.getElementById('keys').showModal()],
    [['Escape'], 'Leave the search, or return to the list', () => leave()],
];

function focusOn(id) {
    const node = document.getElementById(id);
    if (node)
        node.focus();
}

function press(id) {
    const node = document.getElementById(id);
    if (node && !node.disabled)
        node.click();
}

function step(by) {
    const links = [...document.querySelectorAll('#view tbody td:first-child a, #view .lines a, ' +
        '#view .file-head a, #view .missing a')];
    const at = links.indexOf(document.activeElement);
    const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by];
    if (next)
        next.focus();
}

function leave() {
    if (document.activeElement && document.activeElement.id === 'search')
        document.activeElement.blur();
    else if (ui.view === 'client')
        location.hash = '#/clients';
    else if (ui.view === 'file')
        location.hash = '#/locks';
}

function onKey(event) {
    const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping && event.key !== 'Escape' ||
        document.getElementById('keys').open)
        return;
    const row = keyTable.find(([keys]) => keys.includes(event.key));
    if (!row)
        return;
    event.preventDefault();
    row[2](event.key);
}

// ---- light and dark -------------------------------------------------------------------------

const prefersDark = matchMedia('(prefers-color-scheme: dark)');

function applyTheme() {
    const isDark = ui.theme === 'dark' || ui.theme === 'auto' && prefersDark.matches;
    document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
    const button = document.getElementById('theme');
    const words = {auto: 'System colours', light: 'Light colours',
        dark: 'Dark colours'}[ui.theme];
    button.textContent = {auto: '◐', light: '○', dark: '●'}[ui.theme];
    button.title = words + ' (t)';
    button.setAttribute('aria-label', words);
}

function turnTheme() {
    ui.theme = {auto: 'light', light: 'dark', dark: 'auto'}[ui.theme];
    try {
        localStorage.setItem('holdfast-theme', ui.theme);
    } catch (error) { /* it is not remembered */ }
    applyTheme();
}

// ---- the beginning --------------------------------------------------------------------------

function tick() {
    if (document.hidden)
        return;
    const isLive = state.link === 'live';
    if (isLive && Date.now() - state.heardMs > NOTE_MS)
        state.link = 'polling'; // a stream that says nothing is none
    if (Date.now() - state.statusMs > (isLive ? LOOK_MS : POLL_MS) - 100)
        readers.status.want();
    if (state.link !== 'gone') {
        if (Date.now() - lookedMs > LOOK_MS) {
            lookedMs = Date.now();
            wantLists();
            readers.status.want();
        }
        if (Date.now() - sampledMs >= (state.samples.length ? SAMPLE_MS : SAMPLE_MS / 2)) {
            sampledMs = Date.now();
            readers.metrics.want();
        }
    }
    draw();
}

let lookedMs = 0, sampledMs = 0;

function begin() {
    try {
        const kept = localStorage.getItem('holdfast-theme');
        ui.theme = kept === 'light' || kept === 'dark' ? kept : 'auto';
    } catch (error) { /* nothing was remembered */ }
    applyTheme();
    prefersDark.addEventListener('change', applyTheme);
    document.getElementById('theme').addEventListener('click', turnTheme);
    const keys = document.getElementById('keys');
    document.getElementById('help').addEventListener('click', () => keys.showModal());
    patch('keys', h('h2', {id: 'keys-title'}, 'Keyboard shortcuts'),
        h('dl', {class: 'keys'}, keyTable.map(([names, words]) => [h('dt', null, names.map(name =>
            [h('kbd', null, name), ' '])), h('dd', null, words)])),
        h('button', {type: 'button', on: {click: () => keys.close()}}, 'Close'));
    document.addEventListener('keydown', onKey);
    addEventListener('hashchange', () => route(false));
    document.addEventListener('visibilitychange', () => {
        if (document.hidden) {
            closeStream();
            if (state.link === 'live')
                state.link = 'new';
            return;
        }
        openStream();
        tick();
    });
    route(true);
    openStream();
    setInterval(tick, 1000);
    tick();
}

begin();
})();
