/*
 * frame.js -- the page around the views: tabs, drawing, addresses.
 */
const views = {overview: viewOverview, clients: viewClients, client: viewClient, locks: viewLocks,
    file: viewFile, notifications: viewNotifications, log: viewLog, config: viewConfig};
const lockTabs = [['overview', '#/', 'Overview'], ['clients', '#/clients', 'Clients'],
    ['locks', '#/locks', 'Locks'], ['notifications', '#/notifications', 'Notifications'],
    ['log', '#/log', 'Log'], ['config', '#/config', 'Config']];
const monitorTabs = [['overview', '#/', 'Overview'], ['clients', '#/clients', 'Hosts'],
    ['notifications', '#/notifications', 'Notifications'], ['log', '#/log', 'Log'],
    ['config', '#/config', 'Config']];

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

// Which server this is: as its machine is called, or as the browser calls it until that is known.
function serverName() {
    return state.status && state.status.host || location.hostname;
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
    const group = status && status.group ? `, group ${status.group}` : '';
    const name = serverName() + group;
    patch('server', name);
    document.title = title + ' – ' + name + ' – holdfast';
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
    if (before !== ui.view && sortedLists[ui.view])
        sortedLists[ui.view].cursors = [null];
    drawNow();
    const tab = document.querySelector('nav [aria-current]');
    if (tab)
        tab.scrollIntoView({block: 'nearest', inline: 'nearest'});
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
