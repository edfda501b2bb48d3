/*
 * config.js -- the configuration in force: every option, its value and where it came from.
 */
function viewConfig() {
    const text = ui.configSearch.toLowerCase();
    const columns = [{label: 'Option', kind: 'lead', by: row => row.name},
        {label: 'Value', kind: 'whole'}, {label: 'Default', kind: 'whole'},
        {label: 'From', by: row => row.from}];
    const changed = state.config.filter(row => row.from !== 'default').length;
    const rows = sorted('config', columns, state.config.filter(row => (ui.configAll || text ||
        row.from !== 'default') && [row.name, row.help, ...row.values].some(part => part &&
        part.toLowerCase().includes(text))));
    const chip = (isAll, label) => h('button', {type: 'button', key: label,
        'aria-pressed': String(ui.configAll === isAll), on: {click: () => {
            ui.configAll = isAll;
            draw();
        }}}, label);
    return h('div', {key: 'config', class: staleClass()},
        viewTitle('Configuration', h('span', {class: 'soft'}, state.configMs === 0 ? ''
            : `${count(changed)} of ${plural(state.config.length, 'option')} set`)),
        h('div', {class: 'controls'}, searchField('search', 'Search options', ui.configSearch,
            value => {
                ui.configSearch = value;
                draw();
            }), h('div', {class: 'chips', role: 'group', 'aria-label': 'Which options'},
            chip(false, 'Set'), chip(true, 'All'))),
        h('div', {class: 'sheet config'}, rows.length === 0
            ? state.configMs === 0 ? empty('Loading', 'Loading the configuration.')
            : text ? empty('No matches', 'No option matches the search.')
            : empty('Nothing is set', 'Every option has its default.')
            : table(columns, rows.map(row => ({key: row.name, cells: [
                [h('b', {class: 'mono'}, row.name), h('span', {class: 'sub'}, row.help)],
                row.values.length === 0 ? h('span', {class: 'soft'}, 'none')
                    : row.values.map((value, i) => h('span', {class: 'mono break value', key: i},
                        value)),
                h('span', {class: 'soft break'}, row.default === null ? '–' : row.default),
                row.from === 'default' ? h('span', {class: 'soft'}, row.from) : tag(row.from, 'good')]})), 'Options', 'config')),
        h('p', {class: 'soft small pager'}, 'Passwords in the address of a store are not shown. ' +
            'After a change in the configuration file:', command('holdfast reload')));
}
