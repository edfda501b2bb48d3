/*
 * overview.js -- the view that is shown first: the state, figures, who needs attention, charts.
 */
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

function logLine(entry) {
    return h('li', {key: entry.key, class: entry.mark},
        h('span', {class: 'mark', 'aria-hidden': 'true'}),
        h('time', null, clockOf(entry.atMs)), h('span', {class: 'what'}, entry.text));
}

function viewOverview() {
    return h('div', {class: 'stack', key: 'overview'},
        statePanel(), figures(), attention(),
        charts(),
        h('section', null, h('div', {class: 'head'}, h('h2', null, 'Recent events'),
            h('a', {href: '#/log', class: 'small'}, 'full log')),
        h('div', {class: 'sheet'}, state.log.length === 0
            ? empty('No events yet', isMonitor() ? 'Registrations, ' +
                'reboots, notifications and upcalls appear here as they happen.'
                : 'Registrations, waits, grants, crashes and recoveries appear here as they happen.')
            : h('ul', {class: 'lines log'}, state.log.slice(0, 6).map(logLine)))));
}
