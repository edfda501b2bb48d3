/*
 * clients.js -- the list of clients, or of the hosts that a monitor watches.
 */
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

const seenMs = client => client.last_seen ? -Date.parse(client.last_seen) : Infinity;
const clientColumns = [{label: 'Client', kind: 'lead', by: client => client.name},
    {label: 'Address', kind: 'whole', by: client => client.address || ''},
    {label: 'State', by: client => client.state},
    {label: 'Locks', kind: 'number', by: client => client.locks, isDown: true},
    {label: 'Waiting', kind: 'number', by: client => client.waiters, isDown: true},
    {label: 'Last seen', kind: 'nowrap', by: seenMs},
    {label: 'Notified', kind: 'whole', by: client => toldWords(client.notification)}];
const hostColumns = [{label: 'Host', kind: 'lead', by: host => host.name},
    {label: 'Address', kind: 'whole', by: host => host.address || ''},
    {label: 'Watched since', kind: 'nowrap', by: host => -Date.parse(host.registered_at)},
    {label: 'Owed', by: host => owedWords(host.host), isDown: true},
    {label: 'Last notice', kind: 'nowrap', by: host => host.rebooted_at
        ? -Date.parse(host.rebooted_at) : Infinity},
    {label: 'Notified of reboot', kind: 'whole', by: host => toldWords(host.notification)}];

// What says nothing new: left out where there is little room.
function quietCells(client) {
    return isMonitor() ? [] : [false, false, client.state === 'active', client.locks === 0,
        client.waiters === 0, false, !isUnreached(client)];
}

function clientCells(client) {
    return [
        [clientLink(client.id, client.name || '(no name)'),
            h('span', {class: 'sub'}, client.id + ', ' + client.protocol +
                (client.mon_name ? ', watches ' + client.mon_name : ''))],
        address(client.address),
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
        client.host.resolved ? address(client.address)
            : tag('not resolved', 'bad'),
        ago(client.registered_at), owed ? tag(owed, 'warn') : h('span', {class: 'soft'}, 'nothing'),
        client.rebooted_at ? ago(client.rebooted_at) : h('span', {class: 'soft'}, 'none'),
        isUnreached(client) ? tag(told[client.notification.state], 'warn')
            : h('span', {class: 'soft'}, toldWords(client.notification)),
    ];
}

let clientSearchTimer = 0;

// When no more is typed for a moment; meanwhile those that are here are shown as far as they match.
function searchClients(text) {
    Object.assign(ui, {search: text, page: 0});
    clearTimeout(clientSearchTimer);
    clientSearchTimer = setTimeout(() => readers.clients.now(), SETTLE_MS);
    draw();
}

function viewClients() {
    const words = clientWords(), isSearching = state.clientsAsked !== clientMatch();
    const filters = isMonitor() ? hostFilters : clientFilters;
    if (!(ui.filter in filters))
        ui.filter = 'all';
    const fits = filters[ui.filter][1], noun = isMonitor() ? 'host' : 'client';
    const title = isMonitor() ? 'Hosts' : 'Clients';
    const columns = isMonitor() ? hostColumns : clientColumns;
    const rows = sorted('clients', columns, state.clients.filter(client => fits(client) &&
        words.every(word => client.key.includes(word))));
    const last = Math.max(0, Math.ceil(rows.length / ROWS_SHOWN) - 1);
    ui.page = Math.min(ui.page, last);
    const from = ui.page * ROWS_SHOWN, shown = rows.slice(from, from + ROWS_SHOWN);
    return h('div', {key: 'clients', class: staleClass()},
        viewTitle(title, h('span', {class: 'soft'}, state.clientsLoading
            ? `loading, ${count(state.clientsLoading)} so far` : '')),
        h('div', {class: 'controls'},
            searchField('search', 'Search by name, address or id', ui.search, searchClients),
            h('div', {class: 'chips', role: 'group', 'aria-label': `Which ${noun}s`},
                Object.entries(filters).map(([name, [label]]) => h('button', {
                    type: 'button', 'aria-pressed': String(ui.filter === name), key: name,
                    on: {click: () => {
                        ui.filter = name;
                        ui.page = 0;
                        draw();
                    }}}, label)))),
        h('div', {class: 'sheet' + (isSearching ? ' stale' : '')}, shown.length > 0
            ? table(columns, shown.map(client => ({key: client.id, quiet: quietCells(client),
                cells: isMonitor() ? hostCells(client) : clientCells(client)})), title, 'clients')
            : state.clientsMs === 0 ? empty('Loading', 'Loading the list.')
            : isSearching ? empty('Searching', `The server looks at all ${noun}s.`)
            : state.clients.length === 0 && !ui.search ? empty(`No ${noun}s yet`, isMonitor() ? 'A host appears ' +
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
