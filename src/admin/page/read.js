/*
 * read.js -- reads what the views show.
 */
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
    const grace = status.grace, atMs = Date.parse(status.time);
    if (state.epochSeen !== status.epoch) {
        if (state.epochSeen !== null)
            write('warn', 'The server restarted: start ' + count(status.epoch) +
                ', state ' + count(status.state) + '.', atMs);
        state.epochSeen = status.epoch;
        state.graceMax = 0;
        state.graceWas = false;
        state.graceEndedMs = 0;
        state.missing.clear();
        state.samplesLast = state.samplesMs = 0;
    }
    const isOn = grace.active || grace.unsettled_locks > 0;
    if (isOn && !state.graceWas)
        write('warn', 'Recovery: ' + graceWords(grace), atMs);
    if (!isOn && state.graceWas) {
        state.graceEndedMs = Date.now();
        if (state.link !== 'live') // else an event said so
            write('good', 'Recovery finished.', atMs);
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
            write(trouble.isMild ? 'warn' : 'bad', trouble.title + ': ' + trouble.words,
                atMs);
    for (const [key, title] of state.troublesSaid)
        if (!troubles.has(key))
            write('good', 'Over: ' + title + '.', atMs);
    state.troublesSaid = troubles;
}

// What a client blocks, up to `limit` requests. It may be gone by now.
async function readBlocked(id, limit) {
    return ask(query('waiters', {blocked_by: id, limit})).catch(error => {
        if (error instanceof Refused && error.status === 404)
            return {waiters: [], next: null};
        throw error;
    });
}

async function readAttention() {
    const worst = blockers().slice(0, NAMED_MAX).map(group => group.id);
    const [crashed, givenUp, notifications, ...blocked] = await Promise.all([
        ask(query('clients', {state: 'crashed', limit: 20})),
        ask(query('clients', {state: 'given_up', limit: 20})),
        ask(query('notifications', {sort: 'result', only: 'untold', limit: UNTOLD_MAX})),
        ...worst.map(id => readBlocked(id, BLOCKED_MAX)),
    ]);
    state.absent = [...crashed.clients, ...givenUp.clients];
    state.blocked = new Map(worst.map((id, i) => [id, blocked[i].waiters]));
    state.unnotified = notifications.notifications;
    state.untold = notifications.total;
}

async function readClient() {
    const id = ui.argument;
    try {
        const client = await ask(query('clients/' + encodeURIComponent(id), {}));
        const isLocker = client.protocol === 'nlm';
        const [locks, waiters, blocked] = isLocker ? await Promise.all([
            ask(query('locks', {client: id, limit: ROWS_SHOWN})),
            ask(query('waiters', {client: id, limit: ROWS_SHOWN})),
            readBlocked(id, PAGE_MAX),
        ]) : [{locks: [], next: null}, {waiters: []}, {waiters: [], next: null}];
        if (id !== ui.argument)
            return;
        state.client = client;
        state.clientAsked = id;
        state.clientError = '';
        state.clientLocks = locks.locks;
        state.clientLocksNext = locks.next;
        state.clientWaiters = waiters.waiters;
        state.clientBlocks = blocked.waiters;
        state.clientBlocksMore = blocked.next !== null;
    } catch (error) {
        if (!(error instanceof Refused) || id !== ui.argument)
            throw error;
        state.clientError = error.message;
    }
}

// What the words in the search field of the locks stand for. The server searches, in all of them.
function lockFilter() {
    const text = ui.lockSearch.trim(), filter = {export: ui.lockExport};
    filter[/^c[0-9]+$/.test(text) ? 'client' : 'match'] = text;
    return filter;
}

function isFiltered() {
    return Object.values(lockFilter()).some(value => value !== '');
}

async function readExports() {
    if (!state.status || !state.status.files || Date.now() - state.exportsMs < 60000)
        return;
    state.exportsMs = Date.now();
    state.exports = (await ask(query('exports', {limit: PAGE_MAX}))).exports
        .map(row => row.directory);
}

// Up to `limit` rows. A long search comes in parts: `show` gets what there is so far and says
// whether to go on.
async function search(name, filter, limit, cursor, show) {
    const found = {rows: [], next: cursor, unnamed: 0};
    do {
        const part = await ask(query(name, {...filter, limit: limit - found.rows.length,
            cursor: found.next}));
        found.rows.push(...part[name]);
        found.next = part.next;
        found.unnamed += part.unnamed || 0;
    } while (found.next !== null && found.rows.length < limit && show(found));
    return found;
}

async function readLocks() {
    const filter = lockFilter(), cursor = state.pages[state.lockPage];
    const asked = JSON.stringify(filter);
    const isAgain = asked === state.locksAsked && cursor === state.locksCursor;
    const isWanted = () => cursor === state.pages[state.lockPage] && ui.view === 'locks' &&
        asked === JSON.stringify(lockFilter());
    const showPart = found => {
        if (isWanted() && !isAgain) {
            state.locks = [...found.rows];
            state.contended = [];
            state.locksNext = null;
            state.locksError = '';
            draw();
        }
        return isWanted();
    };
    try {
        await readExports();
        const [locks, waiters] = await Promise.all([
            search('locks', filter, PAGE_MAX, cursor, showPart),
            search('waiters', filter, 200, null, isWanted),
        ]);
        const files = [...new Set(waiters.rows.map(row => row.file))];
        const contended = [];
        for (const file of files.slice(0, CONTENDED_SHOWN))
            contended.push(await readOneFile(file));
        if (!isWanted())
            return;
        state.locks = locks.rows;
        state.locksNext = locks.next;
        state.locksUnnamed = locks.unnamed + waiters.unnamed;
        state.contended = contended;
        state.contendedMore = files.length - contended.length;
        state.locksError = '';
    } catch (error) {
        const isLate = error.name === 'AbortError';
        if (!isLate && !(error instanceof Refused))
            throw error;
        if (!isWanted())
            return;
        if (!isLate || !isAgain) {
            state.locks = [];
            state.contended = [];
            state.locksNext = null;
            state.locksUnnamed = 0;
        }
        state.locksError = isLate ? `The server did not answer within ${PATIENCE_MS / 1000} ` +
            'seconds. The page asks again.' : error.message;
    }
    state.locksAsked = asked;
    state.locksCursor = cursor;
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

async function readConfig() {
    state.config = (await ask(query('config', {}))).options;
    state.configMs = Date.now();
}

const always = () => true;
const readers = {
    status: new Reader(readStatus, always),
    // Of whom others wait for the status says.
    attention: new Reader(readAttention, () => state.status !== null &&
        ['overview', 'notifications'].includes(ui.view)),
    clients: new Reader(() => sortedLists.clients.read(), () => ui.view === 'clients', 20),
    notifications: new Reader(() => sortedLists.notifications.read(), () =>
        ui.view === 'notifications', 20),
    client: new Reader(readClient, () => ui.view === 'client'),
    locks: new Reader(readLocks, () => ui.view === 'locks', 10),
    config: new Reader(readConfig, () => ui.view === 'config', 10),
    file: new Reader(readFile, () => ui.view === 'file', 10),
    // Where they are shown.
    samples: new Reader(readSamples, () => state.status !== null && ui.view === 'overview' &&
        Date.now() - state.samplesMs >= state.samplesEveryMs / 2),
};

const lists = Object.values(readers).filter(reader => reader.isWanted !== always);

function wantLists(delayMs) {
    for (const reader of lists)
        if (reader.isWanted())
            reader.want(delayMs);
}
