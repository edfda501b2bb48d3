/*
 * begin.js -- the beginning, and the clock of the page. The last part: it starts the page.
 */
function tick() {
    if (document.hidden)
        return;
    const isLive = state.link === 'live';
    if (isLive && Date.now() - state.heardMs > NOTE_MS)
        state.link = 'polling'; // a stream that says nothing is none
    if (Date.now() - state.statusMs > (isLive ? LOOK_MS : POLL_MS) - 100)
        readers.status.want();
    if (state.link !== 'gone') {
        if (Date.now() - lookedMs > LOOK_MS) {
            lookedMs = Date.now();
            wantLists();
            readers.status.want();
        }
    }
    draw();
}

let lookedMs = 0;

function begin() {
    try {
        const kept = localStorage.getItem('holdfast-theme');
        ui.theme = kept === 'light' || kept === 'dark' ? kept : 'auto';
    } catch (error) { /* nothing was remembered */ }
    applyTheme();
    prefersDark.addEventListener('change', applyTheme);
    document.getElementById('theme').addEventListener('click', turnTheme);
    const keys = document.getElementById('keys');
    document.getElementById('help').addEventListener('click', () => keys.showModal());
    patch('keys', h('h2', {id: 'keys-title'}, 'Keyboard shortcuts'),
        h('dl', {class: 'keys'}, keyTable.map(([names, words]) => [h('dt', null, names.map(name =>
            [h('kbd', null, name), ' '])), h('dd', null, words)])),
        h('button', {type: 'button', on: {click: () => keys.close()}}, 'Close'));
    document.addEventListener('keydown', onKey);
    addEventListener('hashchange', () => route(false));
    document.addEventListener('visibilitychange', () => {
        if (document.hidden) {
            closeStream();
            if (state.link === 'live')
                state.link = 'new';
            return;
        }
        openStream();
        tick();
    });
    route(true);
    openStream();
    setInterval(tick, 1000);
    tick();
}

begin();
