/*
 * condition.js -- the state of the server in words, as `holdfast status` says it.
 */
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
    const begin = grace.active ? `grace ${countdown(grace.remaining_seconds)} left`
                               : 'grace is over, but some clients are still reclaiming';
    if (grace.unsettled_locks === 0)
        return begin + '.';
    return `${begin}, waiting for ${plural(grace.unsettled_locks, 'lock')} of ` +
        `${grace.waiting_for_more ? 'more than ' : ''}${plural(clients, 'client')}.`;
}

function troublesOf(status) {
    const list = [], store = status.store, rpcbind = status.rpcbind;
    if (store.stalled)
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
        list.push({key: holder.id, isMild: true, isHolder: true,
            title: `${clientText(holder)} does not answer`,
            words: `it blocks ${plural(holder.waiters, 'request')}, the oldest for ` +
                `${duration(holder.blocked_seconds)}; silent for ` +
                `${duration(holder.silent_seconds)}.`});
    return list;
}

// What the server says needs attention, a sentence each; a server that waits says nothing.
function sentences() {
    return state.status && state.status.attention || [];
}

function lookOfServer(troubles) {
    return troubles.length || sentences().length ? 'warn' : 'good';
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
    return {look: lookOfServer(troubles), title: 'Monitoring', troubles,
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
        return {look: 'warn', title: 'Recovering', clock: countdown(graceLeft(grace)) + ' left', troubles,
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
    const silent = status.silent_holders ? status.silent_holders.length : 0;
    return {look: lookOfServer(troubles), troubles,
        title: 'Ready' + (silent ? `, ${plural(silent, 'holder')} silent` : ''),
        words: since < 2 ? 'Recovered just now. Clients are served.'
            : since < 60 ? `Recovered ${duration(since)} ago. Clients are served.`
            : status.locks === 0 ? 'Clients are served. No locks are held.'
            : `Clients are served. ${plural(status.locks, 'lock')} held` +
                (status.waiters ? `, ${plural(status.waiters, 'request')} waiting.` : ', nobody ' +
                'waits.')};
}
