/*
 * notifications.js -- who was told of our restart, and the log.
 */
function viewNotifications() {
    const order = {given_up: 0, waiting: 1, calling: 2, told: 3, none: 4};
    const columns = [{label: isMonitor() ? 'Host' : 'Client', kind: 'lead', by: row => row.name},
        {label: 'Address', kind: 'whole', by: row => row.address || ''},
        {label: 'Our name used', by: row => row.name_used}, {label: 'Transport'},
        {label: 'Attempt', kind: 'number', by: row => row.attempt, isDown: true},
        {label: 'Result', by: row => order[row.result]},
        {label: 'Next try', kind: 'nowrap', by: row => row.next_try_seconds === null ? Infinity
            : row.next_try_seconds}];
    const rows = sorted('notifications', columns, [...state.notifications].sort((a, b) =>
        order[a.result] - order[b.result] || b.attempt - a.attempt));
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
                : 'After a restart the server notifies every client that held a lock, and after a ' +
                'release the client it concerns. Each of them appears here with the result.')
            : table(columns, shown.map(row => ({key: row.client, cells: [
                [clientLink(row.client, row.name || '(no name)'), h('span', {class: 'sub'},
                    row.client + ', ' + row.protocol)],
                address(row.address),
                h('span', {class: 'break'}, row.name_used), row.transport || '–',
                count(row.attempt), tag(told[row.result], row.result === 'told' ? 'good'
                    : row.result === 'given_up' ? 'bad' : 'warn'),
                row.next_try_seconds === null ? '–' : 'in ' + duration(row.next_try_seconds)]})),
            'Notifications', 'notifications')),
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
        viewTitle('Log', h('span', {class: 'soft'}, 'the last events of this server, by its clock')),
        h('div', {class: 'controls'}, searchField('search', 'Search the log', ui.logSearch,
            value => {
                ui.logSearch = value;
                draw();
            })),
        h('div', {class: 'sheet'}, rows.length === 0
            ? empty(state.log.length ? 'No matches' : 'No events yet',
                (isMonitor() ? 'Registrations, reboots, notifications and upcalls'
                    : 'Registrations, waits, grants, crashes and recoveries') + ' appear here as ' +
                'they happen. The server’s own log has everything.')
            : h('ul', {class: 'lines log'}, rows.slice(0, LOG_SHOWN).map(logLine))),
        rows.length > LOG_SHOWN ? h('p', {class: 'soft small pager'},
            `The newest ${LOG_SHOWN} of ${count(rows.length)}`) : null);
}
