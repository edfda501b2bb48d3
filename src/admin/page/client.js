/*
 * client.js -- one client, or one host.
 */
function record(pairs) {
    return h('dl', {class: 'record sheet'}, pairs.map(([label, value]) =>
        h('div', {key: label}, h('dt', null, label), h('dd', null,
            value === null || value === undefined || value === '' ? '–' : value))));
}

function moment(time) {
    return time ? [ago(time), h('span', {class: 'sub nowrap'}, time)] : 'never';
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
            ['Address', host.resolved ? address(client.address) : 'the name does not resolve'],
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
            actions([[`holdfast check-client ${client.address || client.name}`,
                'whether it is reachable'],
            [`holdfast release ${client.id}`, 'forget it, if it is gone for good']])));
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
    return h('div', {key: 'client', class: 'stack' + staleClass()},
        h('div', null, back, viewTitle(client.name || client.address,
            tag(client.state, clientTags[client.state]),
            isUnreached(client) ? tag(told[client.notification.state], 'warn') : null),
        state.clientError ? h('p', {class: 'note'}, 'This client is gone. ' + state.clientError)
            : null,
        record([
            ['Address', address(client.address)], ['Last seen', moment(client.last_seen)],
            ...client.protocol === 'nlm' ? [['Locks', count(client.locks)],
                ['Waiting', count(client.waiters)]]
                : client.protocol === 'nsm' ? [['Monitors', client.mon_name]] : [],
        ])),
        client.protocol !== 'nlm' ? null : [clientBlocks(), clientWaits(), clientHolds(client)],
        h('section', {key: 'actions'}, h('div', {class: 'head'}, h('h2', null, 'Actions')),
            h('div', {class: 'sheet pad'},
                h('p', {class: 'soft'}, 'This page is read-only. On the server, as root:'),
                actions([[`holdfast check-client ${client.address}`, 'whether it is reachable'],
                    [`holdfast explain ${client.id}`, 'what happens to its locks if the server ' +
                        'or the client crashes now'],
                    [`holdfast release ${client.id}`, 'release its locks, if it is gone for ' +
                        'good: check that first']]))),
        h('section', {key: 'details'}, h('div', {class: 'head'}, h('h2', null, 'Details')),
            clientDetails(client).map(([title, pairs]) => h('div', {key: title, class: 'group'},
                h('h3', null, title), record(pairs)))));
}

function actions(rows) {
    return h('ul', {class: 'commands'}, rows.map(([text, words]) => h('li', {key: text},
        command(text), h('span', null, words))));
}

// What is rarely needed, by what it is about.
function clientDetails(client) {
    const news = client.notification, tracked = client.tracked;
    const yes = value => value ? 'yes' : 'no';
    return [
        ['Identity', [
            ['Id', mono(client.id)], ['Protocol', client.protocol], ['Name', client.name],
            ['Our address', mono(client.local_address)],
            ['Registered', moment(client.registered_at)],
            ['Registered in start', count(client.server_epoch)],
            ['Its name was refused elsewhere', yes(client.moved)]]],
        ['Recovery', [
            ['Crashed', yes(client.crashed)], ['Monitored', yes(client.monitored)],
            ['Its NSM state', client.nsm_state === null ? 'unknown' : count(client.nsm_state)],
            ['Its last reboot', client.rebooted_at ? moment(client.rebooted_at) : 'none seen'],
            ['Not reclaimed yet', count(client.unsettled_locks)],
            ['Reclaimed since our start', count(client.reclaimed)],
            ['Share reservations', count(client.share_reservations)]]],
        ['Notification', [
            ['Notified', toldWords(news)], ['Attempts', count(news.attempts)],
            ['Next attempt', news.next_try_seconds === null ? 'none planned' : 'in ' +
                duration(news.next_try_seconds)]]],
        ...tracked ? [['Tracked', [['May stay away', duration(tracked.window_s)],
            ['Until', tracked.deadline ? h('span', {class: 'nowrap'}, tracked.deadline)
                : 'no such time is known']]]] : [],
        // The callback of SM_MON; clients that only lock have none.
        ...client.protocol !== 'nsm' ? [] : [['Callback', [
            ['Called back at', client.callback_host], ['Callback program', client.callback_prog],
            ['Callback version', client.callback_vers],
            ['Callback procedure', client.callback_proc], ['Private bytes', mono(client.priv)]]]],
    ];
}

// Who waits for what it holds; nothing is said of a client that is in nobody's way.
function clientBlocks() {
    const rows = state.clientBlocks;
    if (rows.length === 0)
        return null;
    const columns = [{label: 'File', kind: 'lead', by: row => fileText(row.file)},
        {label: 'Client', by: clientText}, {label: 'Range', by: row => row.offset},
        {label: 'Mode', by: modeOf}, {label: 'Waits', kind: 'nowrap', by: waitSeconds, isDown: true}];
    return h('section', {key: 'blocks'},
        h('div', {class: 'head'}, h('h2', null, 'Blocks'), h('span', {class: 'soft small'},
            (state.clientBlocksMore ? 'more than ' : '') + plural(rows.length, 'request') +
            ', oldest ' + (state.clientBlocksMore ? 'of these ' : '') +
            duration(Math.max(...rows.map(waitSeconds))))),
        h('div', {class: 'sheet'}, table(columns, sorted('blocks', columns, rows)
            .slice(0, ROWS_SHOWN).map((row, i) => ({key: i, cells: [fileLink(row.file),
                clientLink(row.client, clientText(row)), rangeText(row), modeOf(row),
                duration(waitSeconds(row))]})), 'Blocked requests', 'blocks')),
        rows.length > ROWS_SHOWN ? h('p', {class: 'soft small pager'},
            `The first ${ROWS_SHOWN} of ${count(rows.length)}`) : null);
}

function clientWaits() {
    const columns = [{label: 'File', kind: 'lead', by: row => fileText(row.file)},
        {label: 'Range', by: row => row.offset}, {label: 'Mode', by: modeOf},
        {label: 'Blocked by', by: row => row.blocked_by ? clientText(row.blocked_by) : ''},
        {label: 'For', kind: 'nowrap', by: waitSeconds, isDown: true}];
    return h('section', {key: 'waits'},
        h('div', {class: 'head'}, h('h2', null, 'Waiting for')),
        h('div', {class: 'sheet'}, state.clientWaiters.length === 0
            ? empty('Not waiting', 'Its blocked requests are listed here.')
            : table(columns, sorted('waits', columns, state.clientWaiters).map((row, i) =>
                ({key: i, cells: [fileLink(row.file), rangeText(row), modeOf(row),
                    row.blocked_by ? clientLink(row.blocked_by.client,
                        clientText(row.blocked_by)) : 'next in line',
                    duration(waitSeconds(row))]})), 'Waits', 'waits')));
}

// Only all of them can be sorted.
function clientHolds(client) {
    const columns = [{label: 'File', kind: 'lead', by: row => fileText(row.file)},
        {label: 'Range', by: row => row.offset}, {label: 'Mode', by: modeOf},
        {label: 'Process', kind: 'number', by: row => row.svid},
        {label: 'State', by: row => row.state},
        {label: 'Since', kind: 'nowrap', by: row => -Date.parse(row.granted_at)}];
    const rows = state.clientLocksNext ? state.clientLocks
        : sorted('holds', columns, state.clientLocks);
    return h('section', {key: 'holds'},
        h('div', {class: 'head'}, h('h2', null, 'Holds'), state.clientLocksNext
            ? h('span', {class: 'soft small'}, `the first ${ROWS_SHOWN} of ` +
                count(client.locks)) : null),
        h('div', {class: 'sheet'}, rows.length === 0
            ? empty('No locks', 'Its locks are listed here.')
            : table(columns, rows.map((row, i) => ({key: i, cells: [fileLink(row.file),
                rangeText(row), modeOf(row), count(row.svid), tag(row.state,
                    row.state === 'held' ? '' : 'warn'), ago(row.granted_at)]})), 'Locks',
            state.clientLocksNext ? null : 'holds')));
}
