/*
 * notifications.js -- who was told of our restart, and the log.
 */
const notificationColumns = [{label: 'Client', kind: 'lead', sort: 'name'},
    {label: 'Address', kind: 'whole', sort: 'address'},
    {label: 'Our name used', sort: 'name_used'}, {label: 'Transport'},
    {label: 'Attempt', kind: 'number', sort: 'attempt', isDown: true},
    {label: 'Result', sort: 'result'},
    {label: 'Next try', kind: 'nowrap', sort: 'next_try_seconds'}];
const hostNotificationColumns = [{...notificationColumns[0], label: 'Host'},
    ...notificationColumns.slice(1)];

sortedLists.notifications = new SortedList('notifications', 'result', () => isMonitor()
    ? hostNotificationColumns : notificationColumns, () => ({}));

function viewNotifications() {
    const list = sortedLists.notifications;
    const toldCount = Math.max(0, list.total - state.untold);
    return h('div', {key: 'notifications', class: staleClass()},
        viewTitle('Notifications', list.total ? h('span', {class: 'soft'}, `${count(toldCount)} ` +
            `of ${count(list.total)} notified`) : null),
        h('div', {class: 'sheet' + (list.isCurrent() ? '' : ' stale')}, list.rows.length === 0
            ? list.readMs === 0 ? empty('Loading', 'Loading the list.')
            : empty('No notifications', isMonitor() ? 'After a reboot of this machine every watched ' +
                'host is notified. Each of them appears here until it has answered.'
                : 'After a restart the server notifies every client that held a lock, and after a ' +
                'release the client it concerns. Each of them appears here with the result.')
            : table(list.columns(), list.rows.map(row => ({key: row.client, cells: [
                [clientLink(row.client, row.name || '(no name)'), h('span', {class: 'sub'},
                    row.client + ', ' + row.protocol)],
                address(row.address),
                h('span', {class: 'break'}, row.name_used), row.transport || '–',
                count(row.attempt), tag(told[row.result], row.result === 'told' ? 'good'
                    : row.result === 'given_up' ? 'bad' : 'warn'),
                row.next_try_seconds === null ? '–' : 'in ' + duration(row.next_try_seconds)]})),
            'Notifications', 'notifications')),
        list.pager());
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
