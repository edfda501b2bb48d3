/*
 * parts.js -- small parts that the views share: links, tags, tables, fields.
 */
// What is not current looks like it.
function staleClass() {
    return state.link === 'gone' ? ' stale' : '';
}

function tag(text, look) {
    return h('span', {class: 'tag ' + (look || '')}, text);
}

function clientLink(id, text) {
    return h('a', {href: '#/clients/' + encodeURIComponent(id), class: 'name'}, text);
}

function fileLink(file) {
    return h('a', {href: '#/files/' + encodeURIComponent(file), class: 'mono', title: file},
        fileText(file));
}

// Where no sets of files are named, all of them are in one, and that says nothing.
function shareTag(share) {
    return share && share !== 'default' ? tag(share) : null;
}

function empty(title, words) {
    return h('div', {class: 'empty'}, h('b', null, title), h('p', null, words));
}

function searchField(id, label, value, onText) {
    return h('div', {class: 'search'},
        h('label', {class: 'hidden-text', for: id}, label),
        h('input', {type: 'search', id, value, placeholder: label, autocomplete: 'off',
            spellcheck: 'false', maxlength: '256',
            on: {input: event => onText(event.target.value)}}));
}

// A command to be typed on the server, and a button that copies it.
function command(text) {
    return h('span', {class: 'command'}, h('code', null, text),
        h('button', {type: 'button', class: 'copy', 'aria-label': 'Copy ' + text,
            on: {click: () => copy(text)}}, ui.copied === text ? 'Copied' : 'Copy'));
}

// Browsers give the clipboard to pages of this machine or of https only; the old way works elsewhere.
async function copy(text) {
    try {
        await navigator.clipboard.writeText(text);
    } catch (error) {
        const field = document.createElement('textarea');
        field.value = text;
        document.body.append(field);
        field.select();
        document.execCommand('copy');
        field.remove();
    }
    ui.copied = text;
    document.getElementById('said').textContent = 'Copied: ' + text;
    setTimeout(() => {
        ui.copied = '';
        draw();
    }, 2000);
    draw();
}

function address(text) {
    return h('span', {class: 'mono nowrap'}, text);
}

// Rows in the order that was chosen for this table; as they are until one is. Columns that can be
// sorted by have `by`, from a row to a number or a text; with `isDown` the largest comes first.
function sorted(name, columns, rows) {
    const chosen = ui.sorts[name];
    if (!chosen || !columns[chosen.column] || !columns[chosen.column].by)
        return rows;
    const by = columns[chosen.column].by, sign = chosen.isDown ? -1 : 1;
    return rows.map(row => [by(row), row]).sort(([a], [b]) => sign * (a === b ? 0
        : typeof a === 'string' ? collator.compare(a, b) : a < b ? -1 : 1)).map(([, row]) => row);
}

const collator = new Intl.Collator('en', {numeric: true});

function sortBy(name, column, isDownFirst) {
    const chosen = ui.sorts[name];
    const isSame = chosen && chosen.column === column;
    const isDown = isSame ? !chosen.isDown : Boolean(isDownFirst);
    if (isSame && isDown === Boolean(isDownFirst))
        delete ui.sorts[name]; // the third time: as it was
    else
        ui.sorts[name] = {column, isDown};
    if (sortedLists[name])
        sortedLists[name].restart();
    draw();
}

// A table whose rows are in the order of `sorted`, or of the server, where columns have `sort`, if
// it has a name for that.
function table(columns, rows, label, name) {
    const chosen = name && ui.sorts[name];
    return h('table', {role: 'table', 'aria-label': label},
        h('thead', {role: 'rowgroup'}, h('tr', {role: 'row'}, columns.map((column, i) => {
            const isChosen = chosen && chosen.column === i;
            return h('th', {role: 'columnheader', scope: 'col', class: column.kind || '',
                'aria-sort': isChosen ? (chosen.isDown ? 'descending' : 'ascending') : false},
            name && (column.by || column.sort) ? h('button', {type: 'button', class: 'sort', on: {click: () =>
                sortBy(name, i, column.isDown)}}, column.label, h('span', {class: 'arrow',
                'aria-hidden': 'true'}, isChosen ? (chosen.isDown ? '↓' : '↑') : '↕')) : column.label);
        }))),
        h('tbody', {role: 'rowgroup'}, rows.map(row => h('tr', {role: 'row', key: row.key},
            row.cells.map((cell, i) => h('td', {role: 'cell', 'data-label': columns[i].label,
                class: (columns[i].kind || '') + (row.quiet && row.quiet[i] ? ' quiet' : '')},
            cell))))));
}

function pager(text, isFirst, isLast, turn) {
    return h('div', {class: 'pager'}, h('span', {class: 'soft small'}, text),
        isFirst && isLast ? null : [
            h('button', {type: 'button', disabled: isFirst, id: 'previous',
                on: {click: () => turn(-1)}}, 'Previous'),
            h('button', {type: 'button', disabled: isLast, id: 'next',
                on: {click: () => turn(1)}}, 'Next')]);
}

function viewTitle(text, ...more) {
    return h('div', {class: 'head'}, h('h1', {class: 'view-title break', id: 'title',
        tabindex: '-1'}, text), more);
}
