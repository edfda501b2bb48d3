/*
 * bars.js -- the locks of a file, drawn over its bytes.
 */
function endOf(row) {
    return row.length === 0 ? Infinity : row.offset + row.length;
}

// Where each byte is drawn, from 0 to 1. Ranges differ by many powers of two, so a stretch between
// two ends of ranges gets room by the logarithm of its length, and one that nobody touches little.
function scaleOf(rows) {
    const edges = [...new Set(rows.flatMap(row => [row.offset, endOf(row)]))]
        .sort((a, b) => a < b ? -1 : 1);
    const opened = new Map();
    for (const row of rows) {
        opened.set(row.offset, (opened.get(row.offset) || 0) + 1);
        opened.set(endOf(row), (opened.get(endOf(row)) || 0) - 1);
    }
    const places = new Map();
    let total = edges[0] > 0 ? 1 : 0, depth = 0;
    for (let i = 0; i < edges.length; i++) {
        places.set(edges[i], total);
        depth += opened.get(edges[i]);
        if (i + 1 === edges.length)
            break;
        const length = edges[i + 1] - edges[i];
        total += depth === 0 ? 1.5 : length === Infinity ? 6 : 2 + Math.log2(1 + length) / 2;
    }
    return {edges, at: edge => places.get(edge) / total};
}

function percent(part) {
    return (100 * part).toFixed(3) + '%';
}

function bar(scale, row, look, key) {
    const left = scale.at(row.offset), right = scale.at(endOf(row));
    return h('div', {key, class: 'bar ' + look + (row.length === 0 ? ' to-end' : ''),
        title: rangeText(row), style: {left: percent(left), width: percent(right - left)}});
}

function lookOf(lock) {
    return (lock.state === 'held' ? '' : lock.state) + (lock.exclusive ? '' : ' shared');
}

function modeOf(row) {
    return row.exclusive ? 'exclusive' : 'shared';
}

const lockWords = {
    held: '', offered: ', being granted', unsettled: ', not reclaimed yet',
    freeing: ', being released',
};

// One row for each owner, in the order in which they come.
function lanesOf(rows) {
    const lanes = new Map();
    for (const row of rows) {
        const key = row.client + ' ' + row.svid + ' ' + row.owner;
        if (!lanes.has(key))
            lanes.set(key, {key, first: row, rows: []});
        lanes.get(key).rows.push(row);
    }
    return [...lanes.values()];
}

function lane(scale, one, words, look) {
    return h('div', {class: 'lane', key: one.key},
        h('div', {class: 'who'}, clientLink(one.first.client, clientText(one.first)),
            h('span', {class: 'soft small'}, one.first.client + ', process ' + one.first.svid)),
        h('div', {class: 'track', role: 'img', 'aria-label': one.rows.slice(0, 3).map(rangeText)
            .join(', ')}, one.rows.slice(0, BARS_MAX).map((row, i) =>
            bar(scale, row, look(row), i))),
        h('div', {class: 'range'}, words));
}

function lockLaneWords(one) {
    const row = one.first;
    return one.rows.length > 1
        ? [plural(one.rows.length, 'range'), h('br'), modeOf(row) + ', since ' +
            ago(row.granted_at).replace(/ ago$/, '')]
        : [rangeText(row), h('br'), modeOf(row) + lockWords[row.state] + ', ' +
            ago(row.granted_at)];
}

function waitSeconds(row) {
    return Math.max(0, (now() - Date.parse(row.queued_at)) / 1000);
}

function waiterLaneWords(one) {
    const row = one.first, by = row.blocked_by;
    const behind = row.ahead > 0 ? `, behind ${plural(row.ahead, 'other')}` : '';
    return [rangeText(row) + ', ' + modeOf(row), h('br'), 'waits ' + duration(waitSeconds(row)) +
        (by ? ' for ' : ', next in line'), by ? h('span', {class: 'name'}, clientText(by)) : null,
    behind];
}

function axis(scale) {
    const edges = scale.edges, marks = [];
    let last = -1;
    edges.forEach((edge, i) => {
        const place = scale.at(edge), isLast = i + 1 === edges.length;
        if (!isLast && (place - last < 0.14 || place > 0.84) && i > 0)
            return;
        last = place;
        marks.push(h('span', {class: place < 0.06 ? 'first' : place > 0.9 ? 'last' : '',
            style: {left: percent(place)}}, edge === Infinity ? 'end of file' : count(edge)));
    });
    return h('div', {class: 'lane axis-lane', 'aria-hidden': 'true'}, h('div'),
        h('div', {class: 'axis'}, marks), h('div'));
}

function fileCard(file, lanesMax, isAlone) {
    const holders = lanesOf(file.locks);
    const waiters = lanesOf([...file.waiters].sort((a, b) => a.queued_at < b.queued_at ? -1 : 1));
    const shown = [...holders.slice(0, lanesMax), ...waiters.slice(0, lanesMax)]
        .flatMap(one => one.rows.slice(0, BARS_MAX));
    if (shown.length === 0)
        return null;
    const scale = scaleOf(shown);
    const hidden = (list, word) => list.length > lanesMax
        ? h('p', {class: 'soft small'}, `and ${plural(list.length - lanesMax, word)} more`) : null;
    const share = (file.locks[0] || file.waiters[0]).share;
    return h('article', {class: 'sheet pad', key: file.file},
        h('div', {class: 'file-head'}, isAlone ? null : fileLink(file.file), shareTag(share),
            h('span', {class: 'soft small'}, plural(file.locks.length, 'lock') +
                (file.more ? ' or more' : '') + ' of ' + plural(holders.length, 'owner') +
                (waiters.length ? ', ' + plural(file.waiters.length, 'request') + ' waiting'
                                : ''))),
        h('div', {class: 'lanes'},
            holders.slice(0, lanesMax).map(one => lane(scale, one, lockLaneWords(one), lookOf)),
            hidden(holders, 'owner')),
        waiters.length === 0 ? null : h('div', {class: 'queue'},
            h('p', {class: 'queue-title'}, 'Waiting, in order'),
            h('div', {class: 'lanes'}, waiters.slice(0, lanesMax).map(one =>
                lane(scale, one, waiterLaneWords(one), () => 'waiting')),
            hidden(waiters, 'waiting owner'))),
        axis(scale));
}

function fileStrip(file) {
    const scale = scaleOf(file.locks.slice(0, BARS_MAX));
    const owners = new Set(file.locks.map(row => row.client)).size;
    const waiting = file.locks.some(row => row.waiters > 0);
    return h('li', {key: file.file},
        h('div', {class: 'file-head'}, fileLink(file.file), shareTag(file.locks[0].share)),
        h('div', {class: 'track', 'aria-hidden': 'true'}, file.locks.slice(0, BARS_MAX)
            .map((row, i) => bar(scale, row, lookOf(row), i))),
        h('div', {class: 'soft small'}, plural(file.locks.length, 'lock') + ' of ' +
            (owners === 1 ? '' : plural(owners, 'client')), owners === 1 ? h('span', {class: 'name'},
            clientText(file.locks[0])) : null,
        waiting ? [' ', tag('contended', 'warn')] : null));
}

function legend() {
    return h('div', {class: 'legend'}, [['', 'exclusive'],
        ['shared', 'shared'], ['offered', 'being granted'],
        ['unsettled', 'not reclaimed yet'], ['waiting', 'waiting']].map(([look, word]) =>
        h('span', {key: word}, h('i', {class: 'bar ' + look}), word)),
    h('span', {class: 'scale-note', key: 'scale'}, 'The byte axis is not to scale.'));
}
