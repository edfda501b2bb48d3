/*
 * locks.js -- files with their locks, and one file.
 */
let searchTimer = 0;

// When no more is typed for a moment.
function searchLocks(change) {
    Object.assign(ui, change, {filePage: 0});
    state.pages = [null];
    state.lockPage = 0;
    clearTimeout(searchTimer);
    searchTimer = setTimeout(() => readers.locks.now(), SETTLE_MS);
    draw();
}

// Which export; where there are several.
function exportField() {
    if (state.exports.length < 2 && !ui.lockExport)
        return null;
    return h('div', {class: 'choice'},
        h('label', {class: 'hidden-text', for: 'export'}, 'Export'),
        h('select', {id: 'export', on: {change: event =>
            searchLocks({lockExport: event.target.value})}},
        h('option', {value: '', key: '', selected: ui.lockExport === ''}, 'All exports'),
        state.exports.map(directory => h('option', {value: directory, key: directory,
            selected: ui.lockExport === directory}, directory))));
}

function viewLocks() {
    const files = new Map(), isContended = new Set(state.contended.map(file => file.file));
    for (const row of state.locks)
        if (!isContended.has(row.file)) {
            if (!files.has(row.file))
                files.set(row.file, {file: row.file, locks: []});
            files.get(row.file).locks.push(row);
        }
    const list = [...files.values()], last = Math.max(0, Math.ceil(list.length / FILES_SHOWN) - 1);
    ui.filePage = Math.min(ui.filePage, last);
    const from = ui.filePage * FILES_SHOWN, total = state.status ? state.status.locks : 0;
    const isLast = ui.filePage === last && !state.locksNext;
    const isSearching = state.locksAsked !== JSON.stringify(lockFilter());
    const part = state.lockPage > 0 || state.locksNext
        ? `, of the ${isFiltered() ? 'matching ' : ''}locks ` +
          `${count(state.lockPage * PAGE_MAX + 1)}–` +
          `${count(state.lockPage * PAGE_MAX + state.locks.length)}` +
          (isFiltered() ? state.locksNext ? ' and more' : '' : ` of ${count(total)}`) : '';
    return h('div', {key: 'locks', class: 'stack' + staleClass()},
        h('div', null,
            viewTitle('Locks', h('span', {class: 'soft'}, plural(total, 'lock') + ' held' +
                (state.status && state.status.waiters ? ', ' + plural(state.status.waiters,
                    'request') + ' waiting' : ''))),
            h('div', {class: 'controls'}, searchField('search', 'Search all locks: client, ' +
                'address, id (c17), path or handle', ui.lockSearch, text =>
                searchLocks({lockSearch: text})), exportField()),
            legend()),
        state.locksError ? h('p', {class: 'note'}, state.locksError) : null,
        state.locksUnnamed > 0 && !isSearching ? h('p', {class: 'note'}, 'This search may be ' +
            'incomplete: the server could not learn the names of some files in time ' +
            `(${plural(state.locksUnnamed, 'row')} left out). The page asks again.`)
            : null,
        state.contended.length ? h('section', {class: isSearching ? 'stale' : ''},
            h('div', {class: 'head'}, h('h2', null, 'Contended files'), state.contendedMore > 0
                ? h('span', {class: 'soft small'}, `and on ${plural(state.contendedMore, 'file')}` +
                    ' more') : null),
            h('div', {class: 'files'}, state.contended.map(file => fileCard(file,
                LANES_BRIEF)))) : null,
        h('section', {class: isSearching ? 'stale' : ''},
            h('div', {class: 'head'}, h('h2', null, state.contended.length ? 'Other files'
                : 'Files'), isSearching && list.length > 0 ? h('span', {class: 'soft small'},
                'Searching') : null),
            list.length === 0 ? h('div', {class: 'sheet'}, isSearching && state.locksMs > 0
                ? empty('Searching', 'The server looks at all locks.') : state.locksMs === 0
                ? empty('Loading', 'Loading the list.')
                : total === 0 ? empty('No locks', 'A file appears here as soon as ' +
                    'a client locks part of it.')
                : state.contended.length ? empty('No other files',
                    isFiltered() ? 'Every other match is above.'
                        : 'Every locked file is contended.')
                : state.locksError ? empty('No list', 'The server gave no list of locks.')
                : empty('No matches', 'No lock matches the search.'))
                : h('ul', {class: 'strips sheet'}, list.slice(from, from + FILES_SHOWN)
                    .map(fileStrip)),
            list.length > 0 ? pager(`Files ${count(from + 1)}–` +
                `${count(Math.min(list.length, from + FILES_SHOWN))} of ${count(list.length)}` +
                part, ui.filePage === 0 && state.lockPage === 0, isLast, turnFiles) : null));
}

function turnFiles(step) {
    const shown = new Set(state.locks.map(row => row.file)).size;
    const last = Math.max(0, Math.ceil(shown / FILES_SHOWN) - 1);
    if (step > 0 && ui.filePage >= last && state.locksNext) {
        state.pages[++state.lockPage] = state.locksNext;
        ui.filePage = 0;
        readers.locks.now();
    } else if (step < 0 && ui.filePage === 0 && state.lockPage > 0) {
        state.lockPage--;
        ui.filePage = Infinity;
        readers.locks.now();
    } else {
        ui.filePage = Math.max(0, ui.filePage + step);
    }
    draw();
}

function viewFile() {
    const file = state.file.file === ui.argument ? state.file : null;
    const card = file ? fileCard(file, LANES_MAX, true) : null;
    return h('div', {key: 'file', class: staleClass()},
        h('p', {class: 'small'}, h('a', {href: '#/locks'}, '← Locks')),
        viewTitle(fileText(ui.argument)),
        h('p', {class: 'soft small mono break'}, ui.argument),
        legend(),
        card || h('div', {class: 'sheet'}, file ? empty('No locks on this file', 'New ' +
            'locks on it appear here.') : empty('Loading', 'Loading the locks.')));
}
