/*
 * charts.js -- curves of samples over time, with axes, and the values at the pointer.
 *
 * A plot is PLOT_WIDTH x PLOT_HEIGHT and stretched to its place; words are beside it, not in it.
 */

const PLOT_WIDTH = 300, PLOT_HEIGHT = 80;
const SPAN_MIN_MS = 300000, SPAN_MAX_MS = 3600000;
const TICKS_MS = [60, 300, 600, 900].map(seconds => 1000 * seconds);

function niceAbove(value) {
    const power = 10 ** Math.floor(Math.log10(value || 1));
    return [1, 2, 5, 10].map(step => step * power).find(limit => limit >= value) || 1;
}

function shortNumber(value) {
    return Number.isInteger(value) || value >= 100 ? count(Math.round(value))
        : value.toFixed(value >= 10 ? 1 : 2);
}

function bytesText(value) {
    const power = value < 1 ? 0 : Math.min(4, Math.floor(Math.log2(value) / 10));
    return shortNumber(value / 1024 ** power) + ' ' + ['B', 'KiB', 'MiB', 'GiB', 'TiB'][power];
}

// From when to when: as long as there is something to show, at least five minutes.
function spanOf(samples) {
    const to = samples[samples.length - 1].atMs;
    const long = Math.min(SPAN_MAX_MS, Math.max(SPAN_MIN_MS, to - samples[0].atMs));
    return {from: to - long, to, at: ms => (ms - to + long) / long};
}

// Gaps are where nothing was measured: no commit, no server.
function curve(samples, field, span, top) {
    let text = '', lastMs = -Infinity;
    for (const sample of samples) {
        if (sample[field] === null || sample.atMs < span.from)
            continue;
        const x = PLOT_WIDTH * span.at(sample.atMs);
        const y = PLOT_HEIGHT * (1 - Math.min(1, sample[field] / top));
        // A stroke of no length is a dot: a lone value is seen, too.
        text += sample.atMs - lastMs < 2.5 * sample.lastMs ? `L${x.toFixed(1)} ${y.toFixed(1)}`
            : `M${x.toFixed(1)} ${y.toFixed(1)}h0`;
        lastMs = sample.atMs;
    }
    return text;
}

function minuteOf(ms) {
    return clockOf(ms).slice(0, 5);
}

function timeAxis(span) {
    const step = TICKS_MS.find(ms => (span.to - span.from) / ms <= 6) || SPAN_MAX_MS / 4;
    const marks = [];
    for (let at = Math.ceil(span.from / step) * step; at <= span.to; at += step)
        if (span.at(at) > 0.05 && span.at(at) < 0.95)
            marks.push(h('span', {key: at, style: {left: percent(span.at(at))}}, minuteOf(at)));
    return h('div', {class: 'time-axis', 'aria-hidden': 'true'}, marks);
}

function hoverAt(title, samples, span, part) {
    const ms = span.from + part * (span.to - span.from);
    let best = null;
    for (const sample of samples)
        if (sample.atMs >= span.from && (!best ||
            Math.abs(sample.atMs - ms) < Math.abs(best.atMs - ms)))
            best = sample;
    ui.hover = best ? {title, atMs: best.atMs} : null;
    draw();
}

function hoverStep(title, samples, by) {
    const isHere = ui.hover && ui.hover.title === title;
    const at = isHere ? samples.findIndex(sample => sample.atMs === ui.hover.atMs) : samples.length;
    const next = samples[Math.max(0, Math.min(samples.length - 1, at + by))];
    ui.hover = {title, atMs: next.atMs};
    draw();
}

// What a chart shows: {title, unit, lines: [[field, word], ...], text: value to words, none}.
function plot(what, samples, top) {
    const span = spanOf(samples), words = what.text || shortNumber;
    const hovered = ui.hover && ui.hover.title === what.title
        ? samples.find(sample => sample.atMs === ui.hover.atMs) : null;
    const place = hovered ? span.at(hovered.atMs) : 0;
    const valueWords = sample => what.lines.map(([field, word]) => sample[field] === null ? null
        : (what.lines.length > 1 ? word + ' ' : '') + words(sample[field])).filter(text => text)
        .join(', ') || 'none';
    const box = event => event.currentTarget.getBoundingClientRect();
    return h('div', {class: 'plot', key: 'on'},
        h('div', {class: 'value-axis', 'aria-hidden': 'true'}, [1, 0.5, 0]
            .filter(part => !what.isWhole || Number.isInteger(part * top)).map(part =>
                h('span', {key: part, style: {top: percent(1 - part)}}, words(part * top)))),
        h('div', {class: 'field', tabindex: '0', role: 'img', 'aria-label': `${what.title}` +
            `${what.unit}, ${clockOf((hovered || samples[samples.length - 1]).atMs)}: ` +
            `${valueWords(hovered || samples[samples.length - 1])}. Left and right: other times.`,
        on: {pointermove: event => hoverAt(what.title, samples, span,
            (event.clientX - box(event).left) / box(event).width),
        pointerleave: () => {
            ui.hover = null;
            draw();
        },
        blur: () => {
            ui.hover = null;
            draw();
        },
        keydown: event => {
            if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') {
                event.preventDefault();
                hoverStep(what.title, samples, event.key === 'ArrowLeft' ? -1 : 1);
            }
        }}},
        h('svg', {viewBox: `0 0 ${PLOT_WIDTH} ${PLOT_HEIGHT}`, preserveAspectRatio: 'none',
            'aria-hidden': 'true'},
        [0, 0.5, 1].map(part => h('line', {key: part, class: 'base', x1: 0, x2: PLOT_WIDTH,
            y1: part * PLOT_HEIGHT, y2: part * PLOT_HEIGHT})),
        [...what.lines].reverse().map(([field], i) => h('path', {key: field,
            class: i + 1 === what.lines.length ? 'curve' : 'second',
            d: curve(samples, field, span, top)}))),
        hovered ? h('div', {class: 'pointer', key: 'pointer', style: {left: percent(place)}}) : null,
        hovered ? h('div', {class: 'tip' + (place > 0.6 ? ' before' : ''), key: 'tip',
            style: {left: percent(place)}}, h('b', null, clockOf(hovered.atMs)), ' ' +
            valueWords(hovered)) : null),
        timeAxis(span));
}

function chart(what) {
    const samples = state.samples, fields = what.lines.map(([field]) => field);
    const known = samples.filter(sample => sample[fields[0]] !== null);
    const latest = known.length ? known[known.length - 1][fields[0]] : null;
    const words = what.text || shortNumber;
    const most = Math.max(0, ...known.flatMap(sample => fields.map(field => sample[field] || 0)));
    const top = what.text === bytesText ? niceAbove(most / 1024 ** Math.floor(Math.log2(most || 1) /
        10)) * 1024 ** Math.floor(Math.log2(most || 1) / 10) : niceAbove(Math.max(most, what.isWhole ? 2 : 0) || 1);
    const body = state.metricsOff
        ? h('p', {class: 'soft none', key: 'off'}, 'Not measured: metrics are off ' +
            '(--metrics off).')
        : latest === null ? h('p', {class: 'soft none', key: 'none'}, samples.length && what.none ||
            'The first sample arrives within ten seconds of the start.')
        : plot(what, samples, top);
    return h('section', {class: 'sheet pad chart', key: what.title},
        h('div', {class: 'chart-head'}, h('h2', null, what.title), latest === null
            ? null : h('p', null, h('span', {class: 'figure'}, words(latest)),
                h('span', {class: 'soft small'}, what.unit))), body,
        latest !== null && what.lines.length > 1 ? h('p', {class: 'chart-feet soft small'},
            what.lines.map(([field, word], i) => h('span', {key: field},
                h('i', {class: i ? 'dashed' : '', 'aria-hidden': 'true'}), word))) : null);
}

function charts() {
    const status = state.status, hasFiles = status !== null && status.files;
    const list = [
        {title: 'Requests', unit: ' per second', lines: hasFiles
            ? [['calls', 'all'], ['nlm', 'of locks']] : [['calls', 'all']]},
        {title: 'Commits', unit: ' ms', lines: [['middle', 'median'], ['high', '99 %']],
            none: 'Nothing was committed in the last hour.'},
    ];
    if (!isMonitor())
        list.push({title: 'Locks', unit: ' held', isWhole: true, lines: [['locks', 'held']]},
            {title: 'Waiting', unit: ' requests', isWhole: true,
                lines: [['waiters', 'waiting']]});
    if (hasFiles)
        list.push({title: 'Files', unit: ' read per second', text: bytesText,
            lines: [['read', 'read'], ['written', 'written']]});
    return h('div', {class: 'pair' + (list.length % 2 ? ' odd' : '') + staleClass()},
        list.map(chart));
}
