/*
 * events.js -- the stream of events, and the log that is made of it.
 */
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
    tracked_expired: ['warn', e => `The time of ${e.name} (${idOf(e)}) ran out; its protocol ` +
        'cleans up.'],
    notice: ['warn', e => `${e.name} reported its reboot (state ${e.value}).`],
    notice_ignored: ['', e => `Ignored a reboot notification for ${e.name} from ` +
        `${e.address}: no client has that name there.`],
    notice_ambiguous: ['warn', e => `Ignored a reboot notification for ${e.name} from ` +
        `${e.address}: several clients there share that short name.`],
    notice_foreign: ['warn', e => `Ignored a reboot notification for ${e.name} from ` +
        `${e.address}: the name does not resolve to that address.`],
    notice_unconfirmed: ['', e => `Ignored a reboot notification for ${e.name} from ` +
        `${e.address}: its own status monitor does not confirm it.`],
    told: ['', e => `Notified ${e.name} (state ${e.value}).`],
    not_reached: ['warn', e => `Could not notify ${e.name} at ${e.address} yet; retrying.`],
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
    client_reclaimed: ['good', e => `${e.name} reclaimed ${e.value} of ${plural(e.total, 'lock')}.`],
    client_lost: ['bad', e => `${e.name} reclaimed ${e.value} of ${plural(e.total, 'lock')} in ` +
        'time; released the others.'],
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

// Newest first, by the server's clock: what this page says itself may meet events from before.
function write(mark, text, atMs) {
    const line = {key: ++state.logCount, atMs: atMs || Date.now() + state.skewMs, mark, text};
    const place = state.log.findIndex(other => other.atMs <= line.atMs);
    state.log.splice(place < 0 ? state.log.length : place, 0, line);
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
    state.lastEvent = event.lastEventId;
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
    stream = new EventSource(query('events', {after: state.lastEvent}));
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
        const more = JSON.parse(event.data);
        state.lastEvent = event.lastEventId;
        write('', 'And ' + plural(more.count, 'event') + ' more within a second.',
            Date.parse(more.time));
        wantLists(SETTLE_MS);
    });
    stream.addEventListener('lost', event => {
        write('warn', plural(JSON.parse(event.data).count, 'event') +
            ' missed by this page.');
    });
}
