/*
 * clients.js -- the list of clients, or of the hosts that a monitor watches.
 */
const clientFilters = {all: 'All', trouble: 'In trouble', holding: 'Holding', waiting: 'Waiting'};
const hostFilters = {all: 'All', trouble: 'In trouble', owed: 'Owed'};

// With what the server sorts them by.
const clientColumns = [{label: 'Client', kind: 'lead', sort: 'name'},
    {label: 'Address', kind: 'whole', sort: 'address'}, {label: 'State', sort: 'state'},
    {label: 'Locks', kind: 'number', sort: 'locks', isDown: true},
    {label: 'Waiting', kind: 'number', sort: 'waiters', isDown: true},
    {label: 'Last seen', kind: 'nowrap', sort: 'last_seen', isDown: true},
    {label: 'Notified', kind: 'whole', sort: 'notification'}];
const hostColumns = [{label: 'Host', kind: 'lead', sort: 'name'},
    {label: 'Address', kind: 'whole', sort: 'address'},
    {label: 'Watched since', kind: 'nowrap', sort: 'registered_at', isDown: true},
    {label: 'Owed', sort: 'owed', isDown: true},
    {label: 'Last notice', kind: 'nowrap', sort: 'rebooted_at', isDown: true},
    {label: 'Notified of reboot', kind: 'whole', sort: 'notification'}];

// Those that match every word, as far as the server takes words: 8 of 255 bytes each.
function clientSearch() {
    return ui.search.split(/\s+/).filter(word => word).slice(0, 8)
        .map(word => [...word].slice(0, 60).join('')).join(' ');
}

sortedLists.clients = new SortedList('clients', 'trouble', () => isMonitor() ? hostColumns
    : clientColumns, () => ({words: clientSearch(), only: ui.filter === 'all' ? '' : ui.filter}));

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

// When no more is typed for a moment.
function searchClients(text) {
    ui.search = text;
    clearTimeout(clientSearchTimer);
    clientSearchTimer = setTimeout(() => sortedLists.clients.restart(), SETTLE_MS);
    draw();
}

function viewClients() {
    const filters = isMonitor() ? hostFilters : clientFilters;
    if (!(ui.filter in filters))
        ui.filter = 'all';
    const list = sortedLists.clients, isSearching = !list.isCurrent();
    const noun = isMonitor() ? 'host' : 'client', title = isMonitor() ? 'Hosts' : 'Clients';
    const isAll = !ui.search && ui.filter === 'all';
    return h('div', {key: 'clients', class: staleClass()},
        viewTitle(title),
        h('div', {class: 'controls'},
            searchField('search', 'Search by name, address or id', ui.search, searchClients),
            h('div', {class: 'chips', role: 'group', 'aria-label': `Which ${noun}s`},
                Object.entries(filters).map(([name, label]) => h('button', {
                    type: 'button', 'aria-pressed': String(ui.filter === name), key: name,
                    on: {click: () => {
                        ui.filter = name;
                        list.restart();
                    }}}, label)))),
        h('div', {class: 'sheet' + (isSearching ? ' stale' : '')}, list.rows.length > 0
            ? table(list.columns(), list.rows.map(client => ({key: client.id,
                quiet: quietCells(client), cells: isMonitor() ? hostCells(client)
                    : clientCells(client)})), title, 'clients')
            : list.readMs === 0 ? empty('Loading', 'Loading the list.')
            : isSearching ? empty('Searching', `The server looks at all ${noun}s.`)
            : isAll ? empty(`No ${noun}s yet`, isMonitor() ? 'A host appears ' +
                'here when the lock manager of this machine begins to watch it (SM_MON).'
                : 'A client appears here with its first lock, or when it registers with the ' +
                'status monitor.')
            : empty('No matches', `No ${noun} matches the search and the filter.`)),
        list.pager());
}
